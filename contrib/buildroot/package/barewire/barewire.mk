################################################################################
#
# barewire
#
################################################################################

BAREWIRE_VERSION = 0.2.0
BAREWIRE_SITE = $(call github,barewire,barewire,v$(BAREWIRE_VERSION))
BAREWIRE_LICENSE = MIT or Apache-2.0
BAREWIRE_LICENSE_FILES = LICENSE-MIT LICENSE-APACHE
# The command's crate. The archive's top folder is the workspace, which has the lock file.
BAREWIRE_SUBDIR = command/barewire-cli
BAREWIRE_CARGO_BUILD_OPTS = --package barewire-cli
# As the packages of `cargo xtask dist` are built.
BAREWIRE_CARGO_ENV = CARGO_PROFILE_RELEASE_LTO=true CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1

define BAREWIRE_USERS
	- -1 spi -1 - - - - SPI devices
	- -1 gpio -1 - - - - GPIO chips
	- -1 uio -1 - - - - UIO devices
endef

define BAREWIRE_INSTALL_RULES
	$(INSTALL) -D -m 0644 $(@D)/contrib/udev/60-barewire.rules \
		$(TARGET_DIR)/usr/lib/udev/rules.d/60-barewire.rules
	$(INSTALL) -D -m 0644 $(@D)/contrib/limits.d/60-barewire.conf \
		$(TARGET_DIR)/etc/security/limits.d/60-barewire.conf
endef
BAREWIRE_POST_INSTALL_TARGET_HOOKS += BAREWIRE_INSTALL_RULES

# What `barewire run` loads into a program: a shared library of glibc's.
ifeq ($(BR2_TOOLCHAIN_USES_GLIBC),y)
BAREWIRE_CARGO_BUILD_OPTS += --package barewire-spidev-preload

define BAREWIRE_INSTALL_PRELOAD
	$(INSTALL) -D -m 0755 \
		$(@D)/target/$(RUSTC_TARGET_NAME)/$(if $(BR2_ENABLE_DEBUG),debug,release)/libbarewire_spidev.so \
		$(TARGET_DIR)/usr/lib/barewire/libbarewire_spidev.so
endef
BAREWIRE_POST_INSTALL_TARGET_HOOKS += BAREWIRE_INSTALL_PRELOAD
endif

$(eval $(cargo-package))
