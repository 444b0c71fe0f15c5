// Prints what a program finds out about its board by the C library: streams, directories, attributes.
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void print_file(const char *path)
{
	char text[256] = {0};
	FILE *file = fopen(path, "r");
	if (!file) {
		printf("%s: none\n", path);
		return;
	}
	size_t bytes = fread(text, 1, sizeof text, file);
	fclose(file);
	printf("%s: %zu bytes:", path, bytes);
	for (size_t at = 0; at < bytes; at += strlen(text + at) + 1)
		printf(" \"%s\"", text + at);
	putchar('\n');
}

int main(void)
{
	struct stat found;
	print_file("/proc/device-tree/model");
	print_file("/proc/device-tree/compatible");
	print_file("/sys/firmware/devicetree/base/serial-number");
	print_file("/proc/device-tree/soc/dma-ranges");
	printf("directory %d\n", stat("/proc/device-tree", &found) == 0 && S_ISDIR(found.st_mode));
	printf("link %d\n", lstat("/proc/device-tree", &found) == 0 && S_ISLNK(found.st_mode));
	printf("there %d\n", access("/proc/device-tree/system/linux,revision", R_OK) == 0);

	int listed = 0;
	DIR *proc = opendir("/proc");
	for (struct dirent *entry; proc && (entry = readdir(proc));)
		listed += !strcmp(entry->d_name, "device-tree") || !strcmp(entry->d_name, "cpuinfo");
	closedir(proc);
	printf("listed %d\n", listed);

	char line[4096];
	FILE *cpuinfo = fopen("/proc/cpuinfo", "r");
	while (cpuinfo && fgets(line, sizeof line, cpuinfo))
		if (!strncmp(line, "Hardware", 8) || !strncmp(line, "Revision", 8) || !strncmp(line, "Serial", 6) ||
		    !strncmp(line, "Model", 5))
			fputs(line, stdout);

	char here[256] = "";
	printf("changed %d\n", chdir("/proc/device-tree/system"));
	printf("here %s\n", getcwd(here, sizeof here) ? here : "lost");
	printf("relative %d\n", access("linux,revision", R_OK) == 0 && access("../model", R_OK) == 0);
	printf("up %d\n", chdir("../../../..") == 0 && access("class", R_OK) == 0);
	printf("here %s\n", getcwd(here, sizeof here) ? here : "lost");
	return 0;
}
