// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * /dev/barewireN, which barewire_door.h describes: what programs do with it. door_bind.c has the rest.
 *
 * A visit is an open file that may write: it has the controller, and holds a reference of its runtime power management. One that
 * may only read has nothing.
 *
 * Ordering:
 * 1. `lock` is held from the look at `gone` to the end of a use. Unbinding sets it under the lock, so no use comes after.
 * 2. A page is put into a program's mapping under the lock too, by its fault. Unbinding takes the pages out after it set `gone`, and
 *    none comes back.
 * 3. A line belongs to the visit that selected it last. So a visit that ends late, behind another that took over its bus, leaves
 *    that other's chip selected.
 */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pm_runtime.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/version.h>
#include "door.h"

struct bw_visit {
	struct bw_door *door;
	struct file *file;
	/* Among those that have the controller; empty for one that may only read. */
	struct list_head all;
	bool shares;
	/* The count of interrupts that it has read. */
	u32 seen;
};

/* Under `lock`: why a visit may not use the controller. */
static int bw_refusal(const struct bw_visit *visit)
{
	if (visit->door->gone)
		return -ENODEV;
	if (list_empty(&visit->all))
		return -EBADF;
	return visit->shares || list_is_singular(&visit->door->visits) ? 0 : -EBUSY;
}

void bw_door_mask(struct bw_door *door, bool masked)
{
	unsigned long flags;

	if (!door->interrupts)
		return;
	spin_lock_irqsave(&door->irq_lock, flags);
	if (masked != door->masked) {
		door->masked = masked;
		if (masked)
			disable_irq_nosync(door->host.irq);
		else
			enable_irq(door->host.irq);
	}
	spin_unlock_irqrestore(&door->irq_lock, flags);
}

/* The line is the door's alone, so every interrupt of it is the block's. */
irqreturn_t bw_door_interrupt(int irq, void *data)
{
	struct bw_door *door = data;

	bw_door_mask(door, true);
	WRITE_ONCE(door->count, door->count + 1);
	wake_up_interruptible(&door->waiters);
	return IRQ_HANDLED;
}

/* Under `lock`, awake: no chip selected, no interrupt, the block disabled. */
void bw_door_quiet(struct bw_door *door)
{
	memset(door->selector, 0, sizeof(door->selector));
	bw_door_mask(door, true);
	if (bw_bring_up(&door->host))
		dev_err(door->host.dev, "its clock has %u Hz\n", door->host.board.reference_hz);
	else
		bw_leave(door->host.slot);
}

/* Under `lock`. */
static int bw_enter_door(struct bw_door *door, struct bw_visit *visit)
{
	struct bw_visit *other;
	int ret;

	list_for_each_entry(other, &door->visits, all)
		if (!other->shares)
			return -EBUSY;
	ret = pm_runtime_resume_and_get(door->host.dev);
	if (ret < 0)
		return ret;
	visit->seen = READ_ONCE(door->count);
	list_add(&visit->all, &door->visits);
	return 0;
}

static int bw_door_open(struct inode *inode, struct file *file)
{
	struct bw_door *door = container_of(inode->i_cdev, struct bw_door, cdev);
	struct bw_visit *visit = kzalloc(sizeof(*visit), GFP_KERNEL);
	int ret = 0;

	if (!visit)
		return -ENOMEM;
	visit->door = door;
	visit->file = file;
	INIT_LIST_HEAD(&visit->all);
	mutex_lock(&door->lock);
	if (door->gone)
		ret = -ENODEV;
	else if (file->f_mode & FMODE_WRITE)
		ret = bw_enter_door(door, visit);
	mutex_unlock(&door->lock);
	if (ret) {
		kfree(visit);
		return ret;
	}
	get_device(&door->dev);
	file->private_data = visit;
	return stream_open(inode, file);
}

/* Under `lock`. */
static void bw_leave_door(struct bw_door *door, struct bw_visit *visit)
{
	unsigned int i;

	list_del_init(&visit->all);
	if (list_empty(&door->visits)) {
		bw_door_quiet(door);
		pm_runtime_put_sync_suspend(door->host.dev);
		return;
	}
	for (i = 0; i < BW_LINES; i++)
		if (door->selector[i] == visit) {
			bw_line_set(&door->host, i, false);
			door->selector[i] = NULL;
		}
	pm_runtime_put(door->host.dev);
}

static int bw_door_release(struct inode *inode, struct file *file)
{
	struct bw_visit *visit = file->private_data;
	struct bw_door *door = visit->door;

	mutex_lock(&door->lock);
	/* Unbinding has emptied the list. */
	if (!list_empty(&visit->all))
		bw_leave_door(door, visit);
	mutex_unlock(&door->lock);
	put_device(&door->dev);
	kfree(visit);
	return 0;
}

/* Under `lock`, `gone` set: nobody has the controller any more. */
void bw_door_close_all(struct bw_door *door)
{
	struct bw_visit *visit, *next;

	if (!list_empty(&door->visits))
		bw_door_quiet(door);
	list_for_each_entry_safe(visit, next, &door->visits, all) {
		unmap_mapping_range(visit->file->f_mapping, 0, 0, 1);
		list_del_init(&visit->all);
		pm_runtime_put_noidle(door->host.dev);
	}
	wake_up_all(&door->waiters);
}

static vm_fault_t bw_door_fault(struct vm_fault *fault)
{
	struct bw_visit *visit = fault->vma->vm_file->private_data;
	struct bw_door *door = visit->door;
	vm_fault_t ret = VM_FAULT_SIGBUS;

	mutex_lock(&door->lock);
	if (!door->gone)
		ret = vmf_insert_pfn(fault->vma, fault->address, door->where.start >> PAGE_SHIFT);
	mutex_unlock(&door->lock);
	return ret;
}

static const struct vm_operations_struct bw_door_pages = { .fault = bw_door_fault };

static int bw_door_mmap(struct file *file, struct vm_area_struct *vma)
{
	const unsigned long flags = VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP;
	struct bw_visit *visit = file->private_data;
	struct bw_door *door = visit->door;
	int ret;

	if (vma->vm_pgoff || vma->vm_end - vma->vm_start != PAGE_SIZE || !(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	mutex_lock(&door->lock);
	ret = bw_refusal(visit);
	if (!ret && door->neighbour) {
		dev_warn(door->host.dev, "its page of %lu bytes is not mapped: %s has registers in it\n", PAGE_SIZE,
			 door->neighbour);
		ret = -EPERM;
	}
	mutex_unlock(&door->lock);
	if (ret)
		return ret;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	vm_flags_set(vma, flags);
#else
	vma->vm_flags |= flags;
#endif
	vma->vm_page_prot = pgprot_noncached(vma->vm_page_prot);
	vma->vm_ops = &bw_door_pages;
	return 0;
}

static int bw_door_select(struct bw_visit *visit, unsigned long arg)
{
	bool active = arg & BAREWIRE_DOOR_ACTIVE;
	unsigned long line = arg & ~BAREWIRE_DOOR_ACTIVE;
	struct bw_door *door = visit->door;
	int ret;

	if (line >= BW_LINES)
		return -EINVAL;
	mutex_lock(&door->lock);
	ret = bw_refusal(visit);
	if (!ret && !door->host.gpios[line].desc)
		ret = -EINVAL;
	if (!ret) {
		bw_line_set(&door->host, line, active);
		door->selector[line] = active ? visit : NULL;
	}
	mutex_unlock(&door->lock);
	return ret;
}

static int bw_door_share(struct bw_visit *visit)
{
	struct bw_door *door = visit->door;
	int ret = 0;

	mutex_lock(&door->lock);
	if (door->gone)
		ret = -ENODEV;
	else if (list_empty(&visit->all))
		ret = -EBADF;
	else
		visit->shares = true;
	mutex_unlock(&door->lock);
	return ret;
}

static int bw_door_tell(struct bw_visit *visit, void __user *to)
{
	struct barewire_door_info info = { .version = BAREWIRE_DOOR_VERSION, .lines = BW_LINES };
	struct bw_door *door = visit->door;
	struct bw_host *host = &door->host;
	struct bw_visit *other;
	unsigned int i;
	u32 size;

	if (get_user(size, (u32 __user *)to))
		return -EFAULT;
	if (size < 8)
		return -EINVAL;
	mutex_lock(&door->lock);
	if (door->gone) {
		mutex_unlock(&door->lock);
		return -ENODEV;
	}
	info.size = min_t(u32, size, sizeof(info));
	strscpy(info.block, door->name, sizeof(info.block));
	info.address = door->where.start;
	info.offset = offset_in_page(door->where.start);
	info.length = min_t(resource_size_t, resource_size(&door->where), PAGE_SIZE - info.offset);
	info.reference_hz = host->board.reference_hz;
	info.flags = (door->interrupts ? BAREWIRE_DOOR_HAS_INTERRUPT : 0) | (host->board.d0_sends ? BAREWIRE_DOOR_D0_SENDS : 0);
	list_for_each_entry(other, &door->visits, all)
		info.users++;
	for (i = 0; i < BW_LINES; i++) {
		const struct bw_line *line = &host->board.lines[i];

		info.line[i].kind = line->kind;
		info.line[i].channel = line->channel;
		info.line[i].active_high = line->kind == BAREWIRE_DOOR_GPIO ? !host->gpios[i].active_low : line->active_high;
	}
	mutex_unlock(&door->lock);
	return copy_to_user(to, &info, info.size) ? -EFAULT : 0;
}

static long bw_door_ioctl(struct file *file, unsigned int what, unsigned long arg)
{
	switch (what) {
	case BAREWIRE_DOOR_SELECT:
		return bw_door_select(file->private_data, arg);
	case BAREWIRE_DOOR_SHARE:
		return bw_door_share(file->private_data);
	case BAREWIRE_DOOR_INFO:
		return bw_door_tell(file->private_data, (void __user *)arg);
	default:
		return -ENOTTY;
	}
}

/* Whether the visit may wait for the interrupt, or mask it. */
static int bw_has_interrupt(struct bw_visit *visit)
{
	int ret;

	mutex_lock(&visit->door->lock);
	ret = bw_refusal(visit);
	mutex_unlock(&visit->door->lock);
	return !ret && !visit->door->interrupts ? -EIO : ret;
}

static ssize_t bw_door_read(struct file *file, char __user *to, size_t len, loff_t *pos)
{
	struct bw_visit *visit = file->private_data;
	struct bw_door *door = visit->door;
	u32 count;
	int ret = bw_has_interrupt(visit);

	if (ret)
		return ret;
	if (len != sizeof(count))
		return -EINVAL;
	if (READ_ONCE(door->count) == visit->seen && (file->f_flags & O_NONBLOCK))
		return -EAGAIN;
	ret = wait_event_interruptible(door->waiters,
				       READ_ONCE(door->count) != visit->seen || READ_ONCE(door->gone));
	if (ret)
		return ret;
	if (READ_ONCE(door->gone))
		return -ENODEV;
	count = READ_ONCE(door->count);
	if (put_user(count, (u32 __user *)to))
		return -EFAULT;
	visit->seen = count;
	return sizeof(count);
}

static __poll_t bw_door_poll(struct file *file, poll_table *table)
{
	struct bw_visit *visit = file->private_data;
	struct bw_door *door = visit->door;

	poll_wait(file, &door->waiters, table);
	if (bw_has_interrupt(visit))
		return EPOLLERR | EPOLLHUP;
	return READ_ONCE(door->count) != visit->seen ? EPOLLIN | EPOLLRDNORM : 0;
}

static ssize_t bw_door_write(struct file *file, const char __user *from, size_t len, loff_t *pos)
{
	struct bw_visit *visit = file->private_data;
	struct bw_door *door = visit->door;
	s32 unmasked;
	int ret;

	if (len != sizeof(unmasked))
		return -EINVAL;
	if (get_user(unmasked, (s32 __user *)from))
		return -EFAULT;
	if (unmasked != 0 && unmasked != 1)
		return -EINVAL;
	mutex_lock(&door->lock);
	ret = bw_refusal(visit);
	if (!ret && !door->interrupts)
		ret = -EIO;
	if (!ret)
		bw_door_mask(door, !unmasked);
	mutex_unlock(&door->lock);
	return ret ?: sizeof(unmasked);
}

const struct file_operations bw_door_operations = {
	.owner = THIS_MODULE,
	.open = bw_door_open,
	.release = bw_door_release,
	.mmap = bw_door_mmap,
	.read = bw_door_read,
	.write = bw_door_write,
	.poll = bw_door_poll,
	.unlocked_ioctl = bw_door_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};
