//! `include/barewire.h` is what cbindgen makes of this crate. `BAREWIRE_BLESS=1` writes it anew.

use std::fs;
use std::path::Path;

#[test]
fn the_header_is_made_from_the_sources() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(dir.join("cbindgen.toml")).expect("a configuration");
    // File by file: so cbindgen need not ask cargo about the workspace.
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in [
        "error.rs",
        "types.rs",
        "calls/general.rs",
        "calls/bus.rs",
        "calls/device.rs",
        "calls/lock.rs",
        "calls/prepared.rs",
        "calls/message.rs",
    ] {
        builder = builder.with_src(dir.join("src").join(source));
    }
    let mut made = Vec::new();
    builder.generate().expect("a header").write(&mut made);
    let made = String::from_utf8(made).expect("text");
    // Rust's safety section is the reader's of C too, under a name that needs no Markdown.
    let made = made.replace("# Safety\n", "The caller promises:\n").replace('`', "");
    let path = dir.join("include/barewire.h");
    if std::env::var_os("BAREWIRE_BLESS").is_some() {
        fs::write(&path, &made).expect("the header is writable");
        panic!("{}: written: review and run again", path.display());
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        made == kept,
        "{} is not what the sources make; BAREWIRE_BLESS=1 writes it",
        path.display()
    );
}
