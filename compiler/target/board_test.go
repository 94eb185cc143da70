package target

import (
	"slices"
	"strings"
	"testing"
)

func TestBoardsAreValidTargetsWithoutASystem(t *testing.T) {
	for _, name := range Boards() {
		b, err := Board(name, "board", 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if b.HasOperatingSystem() || b.IsHost() || b.Threads() != 1 || len(b.Siblings()) != 1 {
			t.Errorf("%s: %s", name, b.Encode())
		}
		again, err := Decode(b.Encode())
		if err != nil || again.Fingerprint() != b.Fingerprint() || !strings.HasPrefix(b.Fingerprint(), "board-") {
			t.Errorf("%s: read again it is %v (%v)", name, again, err)
		}
	}
}

func TestBoardsRefuseThreadsAndOtherNames(t *testing.T) {
	if _, err := Board("cortex-m7", "board", 2); err == nil || !strings.Contains(err.Error(), "cortex-m7 runs one") {
		t.Errorf("two threads: %v", err)
	}
	if _, err := Board("cortex-m0", "board", 0); err == nil || !strings.Contains(err.Error(), `unknown target "cortex-m0"`) {
		t.Errorf("an unknown name: %v", err)
	}
}

func TestFlagsOfBoardsNameTheProcessor(t *testing.T) {
	for name, want := range map[string][]string{
		"cortex-m4":  {"--target=thumbv7em-none-eabihf", "-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16"},
		"cortex-m7":  {"--target=thumbv7em-none-eabihf", "-mcpu=cortex-m7", "-mfpu=fpv5-d16"},
		"cortex-m55": {"--target=thumbv8.1m.main-none-eabihf", "-mcpu=cortex-m55"},
		"riscv32":    {"--target=riscv32-unknown-elf", "-march=rv32imafc", "-mabi=ilp32f"},
	} {
		b, err := Board(name, "board", 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, flag := range want {
			if !slices.Contains(b.ClangFlags(), flag) {
				t.Errorf("%s: %v have no %s", name, b.ClangFlags(), flag)
			}
		}
	}
}
