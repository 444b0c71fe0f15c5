SUMMARY = "SPI at the cost of the wire"
DESCRIPTION = "The command barewire reads and writes flash chips, streams converters and talks CAN over SPI, through \
the kernel's spidev or a controller's own registers."
HOMEPAGE = "https://github.com/barewire/barewire"
LICENSE = "MIT | Apache-2.0"
LIC_FILES_CHKSUM = " \
    file://LICENSE-MIT;md5=4f4f0f861dcadbbc699eb3d80ffe5e24 \
    file://LICENSE-APACHE;md5=1836efb2eb779966696f473ee8540542 \
"

# Without SRCREV, bitbake asks the repository which commit the tag names.
SRC_URI = "git://github.com/barewire/barewire.git;protocol=https;nobranch=1;tag=v${PV}"

inherit cargo cargo-update-recipe-crates useradd

# The lock file's crates: written by `bitbake -c update_crates barewire`, which comes first.
include barewire-crates.inc

# As the packages of `cargo xtask dist` are built.
export CARGO_PROFILE_RELEASE_LTO = "true"
export CARGO_PROFILE_RELEASE_CODEGEN_UNITS = "1"

do_compile() {
    oe_cargo_build --package barewire-cli --package barewire-spidev-preload
}

do_install() {
    install -D -m 0755 ${B}/target/${CARGO_TARGET_SUBDIR}/barewire ${D}${bindir}/barewire
    # What `barewire run` loads into a program. It is looked for in ../lib, whatever libdir is.
    install -D -m 0755 ${B}/target/${CARGO_TARGET_SUBDIR}/libbarewire_spidev.so \
        ${D}${nonarch_libdir}/barewire/libbarewire_spidev.so
    install -D -m 0644 ${S}/contrib/udev/60-barewire.rules \
        ${D}${nonarch_libdir}/udev/rules.d/60-barewire.rules
    install -D -m 0644 ${S}/contrib/limits.d/60-barewire.conf \
        ${D}${sysconfdir}/security/limits.d/60-barewire.conf
}

USERADD_PACKAGES = "${PN}"
GROUPADD_PARAM:${PN} = "--system spi; --system gpio; --system uio"

FILES:${PN} += "${nonarch_libdir}/barewire ${nonarch_libdir}/udev"
