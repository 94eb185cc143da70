package toolchain_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/toolchain"
	"github.com/tilth-dev/tilth/compiler/userkernel"
	"github.com/tilth-dev/tilth/lab/testkit/toolchaintest"
)

// kernel returns one that calls a library.
func kernel(t *testing.T, arch, library string) *userkernel.Kernel {
	t.Helper()
	k, err := userkernel.Parse([]byte(`{"name":"calls","arch":"` + arch + `","numerics":"strict","workloads":[{"text":["x"]}],` +
		`"libraries":[` + library + `],"source":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestKernelIsForTheVersionThatIsInstalled: zlib, which compilers are linked with themselves, is the library.
func TestKernelIsForTheVersionThatIsInstalled(t *testing.T) {
	tc, machine := toolchaintest.Native(t, 1)
	other := kernel(t, machine.Arch(), `{"soname":"libz.so.1","version_function":"zlibVersion","version":"0.0.1"}`)
	_, err := toolchain.PinLibraries(t.Context(), tc, machine, other)
	if err == nil {
		t.Fatal("another version is taken for that of the kernel")
	}
	found := regexp.MustCompile(`is for libz\.so\.1 0\.0\.1, and this machine has version ([0-9.]+[0-9]): `).FindStringSubmatch(err.Error())
	if found == nil {
		t.Fatal(err)
	}
	same := kernel(t, machine.Arch(), `{"soname":"libz.so.1","version_function":"zlibVersion","version":"`+found[1]+`"}`)
	pinned, err := toolchain.PinLibraries(t.Context(), tc, machine, same)
	if err != nil || pinned.Digest() != same.Digest() {
		t.Errorf("the version that is there: %v", err)
	}
	for library, want := range map[string]string{
		`{"soname":"libtilthmissing.so.1","version_function":"f","version":"1.0"}`: "linking with libtilthmissing.so.1: it is not installed on this machine",
		`{"soname":"libz.so.1","version_function":"noSuch","version":"1.0"}`:       "noSuch",
		`{"soname":"libz.so.1","version_function":"zError","version":"1.0"}`:       "libz.so.1", // it takes a number
	} {
		if _, err := toolchain.PinLibraries(t.Context(), tc, machine, kernel(t, machine.Arch(), library)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", library, err)
		}
	}
}

// TestVersionMayBeProperties: a function of the C library that has the shape of cublasLtGetProperty plays it. It
// keeps the numbers 0 and 1, of which it returns the one before, and refuses others.
func TestVersionMayBeProperties(t *testing.T) {
	tc, machine := toolchaintest.Native(t, 1)
	of := func(parts string) *userkernel.Kernel {
		return kernel(t, machine.Arch(), `{"soname":"libc.so.6","version_function":"pthread_setcancelstate","version_properties":`+parts+`,"version":"0.0"}`)
	}
	if k, err := toolchain.PinLibraries(t.Context(), tc, machine, of("2")); err != nil || k.Libraries[0].Version != "0.0" {
		t.Errorf("%v", err)
	}
	if _, err := toolchain.PinLibraries(t.Context(), tc, machine, of("3")); err == nil || !strings.Contains(err.Error(), "libc.so.6 tells no version by pthread_setcancelstate") {
		t.Errorf("a part that the library refuses: %v", err)
	}
}
