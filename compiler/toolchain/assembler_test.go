package toolchain

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tilth-dev/tilth/compiler/target"
)

// withAssembler is the toolchain with an assembler that is a script: it copies what it is given behind its flags.
func withAssembler(t *testing.T, script string) (*Toolchain, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ptxas")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700); err != nil { // a command
		t.Fatal(err)
	}
	t.Setenv(AssemblerVariable, path)
	return Find(t.Context(), os.Getenv(Variable))
}

const copies = `if [ "$1" = --version ]; then echo "Cuda compilation tools, release 11.8, V11.8.89"; exit; fi
{ echo "$1"; cat "$2"; } >"$4"
`

// onCard returns this machine with a card of a make.
func onCard(t *testing.T, arch string) *target.Target {
	t.Helper()
	on, err := target.Native(1)
	if err != nil {
		t.Fatal(err)
	}
	on.GPU = &target.GPU{Arch: arch}
	return on
}

// TestAssemblersVersionBelongsToTheToolchain of targets that it makes code for, and of no others.
func TestAssemblersVersionBelongsToTheToolchain(t *testing.T) {
	tc, err := withAssembler(t, copies)
	if err != nil {
		t.Fatal(err)
	}
	host, old, recent := mustNative(t), onCard(t, "sm_80"), onCard(t, "sm_90a")
	with := tc.Name + "+ptxas-11.8.89"
	if tc.For(host) != tc.Name || tc.For(old) != with || tc.For(recent) != tc.Name || !slices.Equal(tc.Names(), []string{tc.Name, with}) {
		t.Errorf("of the host %s, of cards %s and %s, all %q", tc.For(host), tc.For(old), tc.For(recent), tc.Names())
	}
	if !Suits(tc.Name, recent) || Suits(with, recent) || Suits(with, host) || !Suits(with, old) || Assembles(tc.Name) || !Assembles(with) {
		t.Error("a name suits what it should not")
	}
	plain, err := tc.As(tc.Name, old)
	if err != nil || plain.For(old) != tc.Name {
		t.Errorf("without the assembler it is %s, %v", plain.For(old), err)
	}
	if same, err := tc.As(with, old); err != nil || same != tc {
		t.Errorf("with the assembler: %v", err)
	}
	if _, err := tc.As(with, recent); err == nil || !strings.Contains(err.Error(), "the job wants "+with) {
		t.Errorf("for a card that the assembler does not know: %v", err)
	}
	b := deviceBuild(t, "")
	b.Target = old
	if tc.Key(b) == plain.Key(b) {
		t.Error("what an assembler made has the key of what none did")
	}
}

// TestCodeForACardIsAssembled once it is finished; where nothing assembles it, it is kept alone. What the assembler
// refuses is the source's fault.
func TestCodeForACardIsAssembled(t *testing.T) {
	build := func(script, arch string) (string, error) {
		tc, err := withAssembler(t, script)
		if err != nil {
			t.Fatal(err)
		}
		b, path := deviceBuild(t, "__attribute__((nvptx_kernel)) void k(float *x) { *x = 1; }"), filepath.Join(t.TempDir(), "k")
		b.Target, b.Assemble = onCard(t, arch), []string{"-arch=" + arch}
		b.Finish = func([]byte) ([]byte, error) { return []byte("finished"), nil }
		b.Join = func(code, assembled []byte) []byte { return slices.Concat(code, []byte("|"), assembled) }
		if err := tc.Build(t.Context(), b, path); err != nil {
			return "", err
		}
		text, err := os.ReadFile(path)
		return string(text), err
	}
	if got, err := build(copies, "sm_80"); err != nil || got != "finished|-arch=sm_80\nfinished" {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := build(copies, "sm_90a"); err != nil || got != "finished|" {
		t.Errorf("for a card that the assembler does not know: %q, %v", got, err)
	}
	refuses := strings.Replace(copies, "{ echo", `echo "ptxas k, line 3; error   : Unknown symbol 'x'" >&2; echo "ptxas fatal   : aborted" >&2; exit 255; { echo`, 1)
	var failure *Error
	if _, err := build(refuses, "sm_80"); !errors.As(err, &failure) || failure.Kind != Rejected || failure.Error() != "assembling k.c with ptxas-11.8.89: ptxas k, line 3; error   : Unknown symbol 'x'" {
		t.Errorf("what is refused: %v", err)
	}
}

// fakeLibrary returns a library that stands in for nvJitLink 12.4.
func fakeLibrary(t *testing.T) string {
	t.Helper()
	library := filepath.Join(t.TempDir(), "libnvJitLink.so.12")
	if out, err := exec.CommandContext(t.Context(), "cc", "-shared", "-fPIC", "testdata/fake.c", "-o", library).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.Chmod(library, 0o600); err != nil { // as distributions have libraries: no commands
		t.Fatal(err)
	}
	return library
}

// TestLibraryAssembles where it is named, or where there is no ptxas and the loader would find it, behind a newer one
// that does not work.
func TestLibraryAssembles(t *testing.T) {
	library := fakeLibrary(t)
	find := func(variable, path string) *Toolchain {
		t.Setenv(AssemblerVariable, variable)
		t.Setenv("LD_LIBRARY_PATH", path)
		tc, err := Find(t.Context(), os.Getenv(Variable))
		if err != nil {
			t.Fatal(err)
		}
		return tc
	}
	tc, recent := find(library, ""), onCard(t, "sm_90a")
	if with := tc.Name + "+nvjitlink-12.4"; tc.For(recent) != with || !Suits(with, recent) || !Assembles(with) {
		t.Errorf("its name is %s", tc.For(recent))
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(library), "libnvJitLink.so.13"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("ptxas"); err != nil {
		if found := find("", filepath.Dir(library)); found.For(recent) != tc.For(recent) {
			t.Errorf("where the loader looks it is %s", found.For(recent))
		}
	}
	build := func(text string, flags ...string) (string, error) {
		b, path := deviceBuild(t, "__attribute__((nvptx_kernel)) void k(float *x) { *x = 1; }"), filepath.Join(t.TempDir(), "k")
		b.Target, b.Assemble = recent, flags
		b.Finish = func([]byte) ([]byte, error) { return []byte(text), nil }
		b.Join = func(code, assembled []byte) []byte { return slices.Concat(code, []byte("|"), assembled) }
		err := tc.Build(t.Context(), b, path)
		if err != nil {
			return "", err
		}
		made, err := os.ReadFile(path)
		return string(made), err
	}
	if got, err := build("finished", "-arch=sm_90a"); err != nil || got != "finished|-arch=sm_90a\nfinished" {
		t.Errorf("got %q, %v", got, err)
	}
	for text, want := range map[string]string{"refused": "error   : Unknown symbol 'refused'", "": "nvJitLink takes none of these flags"} {
		flags := []string{"-arch=sm_90a"}
		if text == "" {
			flags = []string{"-nonsense"}
		}
		var failure *Error
		if _, err := build(text, flags...); !errors.As(err, &failure) || failure.Kind != Rejected || !strings.Contains(err.Error(), "with nvjitlink-12.4: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestOnlyCardsHaveAnAssemblerLookedFor: others need not wait for it to tell its version.
func TestOnlyCardsHaveAnAssemblerLookedFor(t *testing.T) {
	asked := filepath.Join(t.TempDir(), "asked")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ptxas"), []byte("#!/bin/sh\n: >"+asked+"\n"+copies), 0o700); err != nil { // a command
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv(AssemblerVariable, "")
	tc, err := Find(t.Context(), os.Getenv(Variable))
	if err != nil {
		t.Fatal(err)
	}
	if name := tc.For(mustNative(t)); name != tc.Name {
		t.Errorf("of the host it is %s", name)
	}
	if _, err := os.Stat(asked); err == nil {
		t.Error("it was asked")
	}
	if name := tc.For(onCard(t, "sm_80")); name != tc.Name+"+ptxas-11.8.89" {
		t.Errorf("of a card it is %s", name)
	}
}

// TestLibraryThatDoesNotWork is an error where it was named.
func TestLibraryThatDoesNotWork(t *testing.T) {
	dir := t.TempDir()
	empty, old := filepath.Join(dir, "libnvJitLink.so.13"), filepath.Join(dir, "libnvJitLink.so.12")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(dir, "old.c")
	if err := os.WriteFile(source, []byte("int nvJitLinkCreate;"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "cc", "-shared", "-fPIC", source, "-o", old).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for library, want := range map[string]string{empty: "opening nvJitLink: ", old: "nvJitLink is older than 12.3 or broken"} {
		t.Setenv(AssemblerVariable, library)
		if _, err := Find(t.Context(), os.Getenv(Variable)); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "set it to off") {
			t.Errorf("%s: %v", library, err)
		}
	}
}

// TestAssemblerIsOptional: none is no error, but one that was named and does not work is.
func TestAssemblerIsOptional(t *testing.T) {
	for script, want := range map[string]string{"exit 1": "--version: exit status 1", "echo hello": "it does not tell its version"} {
		if _, err := withAssembler(t, script); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "set it to off") {
			t.Errorf("%s: %v", script, err)
		}
	}
	t.Setenv("PATH", filepath.Dir(os.Getenv(AssemblerVariable))+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv(AssemblerVariable, "")
	if tc, err := Find(t.Context(), os.Getenv(Variable)); err != nil || len(tc.Names()) != 1 {
		t.Errorf("one that nobody named and that does not work: %v", err)
	}
	t.Setenv(AssemblerVariable, "/nowhere/ptxas")
	if _, err := Find(t.Context(), os.Getenv(Variable)); err == nil || !strings.Contains(err.Error(), "/nowhere/ptxas") {
		t.Errorf("one that is not there: %v", err)
	}
	t.Setenv(AssemblerVariable, "off")
	if tc, err := Find(t.Context(), os.Getenv(Variable)); err != nil || len(tc.Names()) != 1 {
		t.Errorf("none: %v", err)
	}
}
