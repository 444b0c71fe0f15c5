//! The checks of the installed library in CI: each is a shell line.
//!
//! They run in a scratch directory, with `$ROOT` the workspace, `$PREFIX` the installed tree, and pkg-config told
//! where it is. A line fails if one of its commands does; it was skipped if it exits with [`SKIPS`].

/// The exit code of a line that cannot run here, as in Automake's tests.
pub(super) const SKIPS: i32 = 77;

/// One check.
#[derive(Debug)]
pub(super) struct Check {
    /// The claim, in words.
    pub(super) name: &'static str,
    /// The script that proves it.
    pub(super) script: &'static str,
}

const fn check(name: &'static str, script: &'static str) -> Check {
    Check { name, script }
}

/// Memcheck: any error and any definite leak fails.
pub(super) const VALGRIND: &str = "valgrind -q --error-exitcode=9 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite";

/// All checks, in order: later ones use what earlier ones built.
pub(super) const CHECKS: &[Check] = &[
    check(
        "the command of the documentation prints the id",
        r#"cd "$ROOT"; cc $(pkg-config --cflags --libs barewire) examples/jedec.c -o "$OLDPWD/jedec"; cd "$OLDPWD"
           test "$(./jedec)" = 'ef 40 19'; if ./jedec sim:nosuch 2> said; then exit 1; fi; grep -q 'BW_ERROR_NAME' said"#,
    ),
    check(
        "--as-needed and the library before the source link too",
        r#"cc -Wl,--as-needed $(pkg-config --cflags --libs barewire) "$ROOT/examples/jedec.c" -o as-needed
           test "$(./as-needed)" = 'ef 40 19'"#,
    ),
    check(
        "the static library links and needs no shared one",
        r#"cc $(pkg-config --cflags barewire) "$ROOT/examples/jedec.c" "$PREFIX/lib/libbarewire.a" -lgcc_s -lutil -lrt \
             -lpthread -lm -ldl -o static
           test "$(env -u LD_LIBRARY_PATH ./static)" = 'ef 40 19'"#,
    ),
    check(
        "the tree may be moved",
        r#"rm -rf moved; cp -a "$PREFIX" moved
           cc "$ROOT/examples/jedec.c" $(PKG_CONFIG_PATH=$PWD/moved/lib/pkgconfig pkg-config --cflags --libs barewire) \
             -o in-moved
           test "$(LD_LIBRARY_PATH=$PWD/moved/lib ./in-moved)" = 'ef 40 19'"#,
    ),
    check(
        "the loader's name of the library",
        r#"readelf -d "$PREFIX/lib/libbarewire.so" > said; grep -q 'SONAME.*libbarewire.so.0' said; grep -q NODELETE said"#,
    ),
    check(
        "the headers compile strictly, as C99, C11, C++17 and C++20",
        r#"for std in c99 c11; do echo '#include <barewire.h>' | cc -std=$std -Wall -Wextra -Wpedantic -Werror \
             $(pkg-config --cflags barewire) -x c -c - -o strict.o; done
           for std in c++17 c++20; do echo '#include <barewire.hpp>' | c++ -std=$std -Wall -Wextra -Wpedantic -Werror \
             $(pkg-config --cflags barewire) -x c++ -c - -o strict.o; done"#,
    ),
    check(
        "the Makefile builds the examples, and they run",
        r#"mkdir -p make; make -s -C "$ROOT/examples/c" OUT="$PWD/make" CFLAGS='-O1 -g -Wall -Wextra -Werror' \
             CXXFLAGS='-O1 -g -Wall -Wextra -Werror'
           for program in jedec prepared async vendor raii; do env -u LD_LIBRARY_PATH make/$program; done"#,
    ),
    check(
        "CMake builds the examples, and they run",
        r#"cmake -S "$ROOT/examples/c" -B cmake > said; cmake --build cmake -j 2 >> said
           for program in jedec prepared async vendor raii; do env -u LD_LIBRARY_PATH cmake/$program > said; done"#,
    ),
    check(
        "programs of the tests build, and they run",
        r#"mkdir -p tests
           for name in threads fork vfork unload freed abi; do
             cc -std=gnu11 -O1 -g -Wall -Wextra -Werror "$ROOT/bindings/c/tests/c/$name.c" \
               $(pkg-config --cflags --libs barewire) -pthread -o tests/$name; done
           c++ -std=c++17 -O1 -g -Wall -Wextra -Werror "$ROOT/bindings/c/tests/c/exception.cpp" \
             $(pkg-config --cflags --libs barewire) -o tests/exception
           for name in threads fork vfork unload freed exception; do timeout 60 tests/$name; done"#,
    ),
    check(
        "another project's driver with two callbacks identifies the simulated chip",
        r#"test -x ../venv/bin/uspiflash || { python3 -m venv ../venv &&
             ../venv/bin/python -m pip install -q uspiflash==0.0.post156 spiflash==0.0.post108; } || exit 77
           ../venv/bin/uspiflash generate -o usf.h 2> said
           cc -O1 -g -I. "$ROOT/bindings/c/tests/c/uspiflash.c" $(pkg-config --cflags --libs barewire) -o tests/uspiflash
           timeout 100 $VALGRIND tests/uspiflash"#,
    ),
    check(
        "an exception that leaves a C callback ends the program with a message",
        r#"if tests/exception raw 2> said; then exit 1; fi; cat said; grep -qi 'foreign exception' said"#,
    ),
    check(
        "valgrind finds no error and no leak in the examples",
        r#"for program in jedec prepared async vendor raii; do timeout 100 $VALGRIND make/$program > said; done"#,
    ),
    check(
        "valgrind finds no error and no leak where threads close, free and fork",
        r#"for name in freed exception; do timeout 100 $VALGRIND tests/$name; done
           # The child has what was its parent's threads', and leaves it.
           timeout 100 $VALGRIND --leak-check=no tests/fork"#,
    ),
    check(
        "the address and undefined behaviour sanitizers find nothing",
        r#"mkdir -p asan; make -s -B -C "$ROOT/examples/c" OUT="$PWD/asan" \
             CFLAGS='-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all' \
             CXXFLAGS='-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all'
           for program in jedec prepared async vendor raii; do asan/$program > said; done
           for name in threads fork freed; do
             cc -std=gnu11 -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all \
               "$ROOT/bindings/c/tests/c/$name.c" $(pkg-config --cflags --libs barewire) -pthread -o asan/$name
             timeout 60 asan/$name; done"#,
    ),
    check(
        "the thread sanitizer finds nothing in the programs",
        // It sees the atomics of what it compiled, and not those of the library.
        r#"export TSAN_OPTIONS=ignore_noninstrumented_modules=1; mkdir -p tsan; make -s -B -C "$ROOT/examples/c" OUT="$PWD/tsan" CFLAGS='-O1 -g -fsanitize=thread' \
             CXXFLAGS='-O1 -g -fsanitize=thread'
           for program in jedec prepared async vendor; do tsan/$program > said; done
           cc -std=gnu11 -O1 -g -fsanitize=thread "$ROOT/bindings/c/tests/c/threads.c" \
             $(pkg-config --cflags --libs barewire) -pthread -o tsan/threads
           timeout 60 tsan/threads"#,
    ),
];
