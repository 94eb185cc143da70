package userkernel

import (
	"strings"
	"testing"
)

const libraries = `{"soname": "libz.so.1", "version_function": "zlibVersion"}, {"soname": "libdnnl.so.2", "version_function": "dnnl_version", "version_numbers": 3}`

// calling returns the kernel of description, which calls libraries.
func calling(list string) string {
	return strings.Replace(description, `"workspace"`, `"libraries": [`+list+`], "workspace"`, 1)
}

func TestPinnedKernelNamesTheVersionsItCalls(t *testing.T) {
	k := parse(t, calling(libraries))
	if k.Pinned() {
		t.Error("versions are known that nobody gave")
	}
	if _, err := Parse(k.Text()); err == nil || !strings.Contains(err.Error(), "does not say which versions of its libraries") {
		t.Errorf("a trace without versions: %v", err)
	}
	pinned, err := k.Pin([]string{"1.2.13", "2.6.3"})
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse(pinned.Text())
	if err != nil || !again.Pinned() || again.Libraries[1].String() != "libdnnl.so.2 2.6.3" {
		t.Errorf("%v, %v", again, err)
	}
	other, err := k.Pin([]string{"1.2.13", "2.6.4"})
	if err != nil || other.Digest() == pinned.Digest() || other.Number() != pinned.Number() {
		t.Errorf("another version is the same kernel, or no later one of it: %v", err)
	}
	if _, err := pinned.Pin([]string{"1.2.13", "2.6.4"}); err == nil || !strings.Contains(err.Error(), "is for libdnnl.so.2 2.6.3, and this machine has version 2.6.4") {
		t.Errorf("another version is accepted: %v", err)
	}
	if k.Libraries[0].Version != "" {
		t.Error("pinning has changed the kernel that was read")
	}
}

func TestLibrariesAreNamedStrictly(t *testing.T) {
	for name, list := range map[string]string{
		"a path":                  `{"soname": "/tmp/libz.so.1", "version_function": "f"}`,
		"a path upwards":          `{"soname": "../libz.so.1", "version_function": "f"}`,
		"a flag":                  `{"soname": "-Wl,-rpath", "version_function": "f"}`,
		"no shared library":       `{"soname": "libz.a", "version_function": "f"}`,
		"a name with a comma":     `{"soname": "libz,x.so.1", "version_function": "f"}`,
		"no function":             `{"soname": "libz.so.1"}`,
		"code for a function":     `{"soname": "libz.so.1", "version_function": "f(system(0))"}`,
		"twice":                   `{"soname": "libz.so.1", "version_function": "f"}, {"soname": "libz.so.1", "version_function": "g"}`,
		"one number":              `{"soname": "libz.so.1", "version_function": "f", "version_numbers": 1}`,
		"too many numbers":        `{"soname": "libz.so.1", "version_function": "f", "version_numbers": 5}`,
		"one property":            `{"soname": "libz.so.1", "version_function": "f", "version_properties": 1}`,
		"too many properties":     `{"soname": "libz.so.1", "version_function": "f", "version_properties": 5}`,
		"numbers and properties":  `{"soname": "libz.so.1", "version_function": "f", "version_numbers": 3, "version_properties": 3}`,
		"words for a version":     `{"soname": "libz.so.1", "version_function": "f", "version": "new"}`,
		"a version with a quote":  `{"soname": "libz.so.1", "version_function": "f", "version": "1.2\""}`,
		"a field that is unknown": `{"soname": "libz.so.1", "version_function": "f", "flags": "-O3"}`,
		"too many":                strings.Repeat(`{"soname": "libz.so.1", "version_function": "f"},`, 5) + `{"soname": "libz.so.1", "version_function": "f"}`,
	} {
		if _, err := parseFolder([]byte(calling(list)), []byte("void kernel(void) {}\n")); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestModuleCallsOneVersionOfALibrary(t *testing.T) {
	k := parse(t, calling(libraries))
	old, err := k.Pin([]string{"1.2.13", "2.6.3"})
	if err != nil {
		t.Fatal(err)
	}
	later, err := k.Pin([]string{"1.3.0", "2.6.3"})
	if err != nil {
		t.Fatal(err)
	}
	if _, sonames, err := Check([]*Kernel{old, old}, ""); err != nil || strings.Join(sonames, " ") != "libz.so.1 libdnnl.so.2" {
		t.Errorf("%v, %v", sonames, err)
	}
	if _, _, err := Check([]*Kernel{old, later}, ""); err == nil {
		t.Error("two versions of a library are called")
	}
	if text, sonames, err := Check([]*Kernel{parse(t, description)}, ""); text != "" || sonames != nil || err != nil {
		t.Errorf("no library: %q, %v, %v", text, sonames, err)
	}
}
