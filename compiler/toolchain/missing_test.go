package toolchain

import (
	"errors"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/target"
)

// TestMissingCLibraryIsNamedByItsPackage: the compiler's message named neither the cause nor the remedy.
func TestMissingCLibraryIsNamedByItsPackage(t *testing.T) {
	machine, err := target.Parse("riscv64", 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, message := range []string{
		"/usr/include/stdint.h:26:10: fatal error: 'bits/libc-header-start.h' file not found",
		"kernel.c:1:10: fatal error: 'stdint.h' file not found",
		"kernel.c:1:10: fatal error: stdint.h: No such file or directory",
		"ld.lld-19: error: cannot open Scrt1.o: No such file or directory",
		"ld.lld-19: error: unable to find library -lgcc",
		"/usr/bin/ld: cannot find crti.o: No such file or directory",
	} {
		var e *Error
		err := withPackage(machine, &Error{Kind: Rejected, Step: "compiling", Message: message})
		if !errors.As(err, &e) || e.Kind != Infra || !strings.HasSuffix(e.Message, "apt-get install gcc-riscv64-linux-gnu libc6-dev-riscv64-cross") {
			t.Errorf("%s\nbecomes %v", message, err)
		}
	}
	for _, message := range []string{"kernel.c:1:1: error: unknown type name 'x'", "ld: cannot find -lx", "ld: undefined reference to `x'"} {
		refused := &Error{Kind: Rejected, Step: "compiling", Message: message}
		if err := withPackage(machine, refused); !errors.Is(err, refused) {
			t.Errorf("%s\nbecomes %v", message, err)
		}
	}
	if withPackage(machine, nil) != nil {
		t.Error("no error becomes one")
	}
}
