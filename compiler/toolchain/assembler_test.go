package toolchain

import (
	"errors"
	"os"
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

// onCard is this machine with a card of a make.
func onCard(t *testing.T, arch string) *target.Target {
	t.Helper()
	on, err := target.Native(1)
	if err != nil {
		t.Fatal(err)
	}
	on.GPU = &target.GPU{Arch: arch}
	return on
}

// TestAnAssemblersVersionBelongsToTheToolchain of targets that it makes code for, and of no others.
func TestAnAssemblersVersionBelongsToTheToolchain(t *testing.T) {
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

// TestAnAssemblerIsOptional: none is no error, but one that was named and does not work is.
func TestAnAssemblerIsOptional(t *testing.T) {
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
