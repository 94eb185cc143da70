package target

import (
	"strings"
	"testing"
)

// card returns a GPU for tests.
func card() *GPU {
	return &GPU{Arch: "sm_90a", Model: "NVIDIA H200", Multiprocessors: 132, WarpThreads: 32, BlockThreads: 1024, MultiprocessorThreads: 2048,
		ThreadRegisters: 255, MultiprocessorRegisters: 64 << 10, BlockSharedBytes: 227 << 10, MultiprocessorSharedBytes: 228 << 10, L2Bytes: 60 << 20}
}

func withCard(t *testing.T, g *GPU) *Target {
	t.Helper()
	host, err := Parse("x86-64-v3", 1)
	if err != nil {
		t.Fatal(err)
	}
	host.GPU = g
	return host
}

// TestGPUIsAnotherDevice than its host; one that is simulated is the host itself, and yet another target.
func TestGPUIsAnotherDevice(t *testing.T) {
	host, on := withCard(t, nil), withCard(t, card())
	if host.DeviceClass() == on.DeviceClass() || !strings.HasPrefix(on.DeviceClass(), "nvidia-h200-sm_90a-") {
		t.Errorf("the host is %s, the card in it %s", host.DeviceClass(), on.DeviceClass())
	}
	played := on.Clone()
	played.GPU.Simulated = true
	if played.DeviceClass() != host.DeviceClass() || played.Fingerprint() == host.Fingerprint() {
		t.Errorf("the host is %s, %s; a card that it plays %s, %s", host.DeviceClass(), host.Fingerprint(), played.DeviceClass(), played.Fingerprint())
	}
	if on.GPU.Simulated {
		t.Error("a clone shares its GPU")
	}
	again, err := Decode(on.Encode())
	if err != nil || again.Fingerprint() != on.Fingerprint() {
		t.Errorf("%s is read as %v, %v", on.Encode(), again, err)
	}
}

// TestBadDescriptionsOfGPUsAreRefused checks that the error names the field.
func TestBadDescriptionsOfGPUsAreRefused(t *testing.T) {
	for want, spoil := range map[string]func(*GPU){
		"instruction set":     func(g *GPU) { g.Arch = "--help" },
		"multiprocessors 0":   func(g *GPU) { g.Multiprocessors = 0 },
		"block_threads 2048":  func(g *GPU) { g.BlockThreads = 2048 },
		"multiple of":         func(g *GPU) { g.BlockThreads = 1000 },
		"block_shared_bytes ": func(g *GPU) { g.BlockSharedBytes = -1 },
		"thread_registers ":   func(g *GPU) { g.ThreadRegisters = 1 << 20 },
	} {
		g := card()
		spoil(g)
		if _, err := Decode(withCard(t, g).Encode()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestCardIsTheSameBesideAnyProcessor: what was measured on one holds on another machine of the architecture.
func TestCardIsTheSameBesideAnyProcessor(t *testing.T) {
	on, err := Host(0)
	if err != nil {
		t.Fatal(err)
	}
	on.GPU = card()
	arch := on.Arch()
	if want := "nvidia-h200-sm_90a-" + arch + "-"; !strings.HasPrefix(on.Fingerprint(), want) || !strings.HasPrefix(on.DeviceClass(), want) {
		t.Errorf("%s, of class %s, do not begin with %s", on.Fingerprint(), on.DeviceClass(), want)
	}
	if facts := on.Facts(); facts[len(facts)-1] != (Fact{"host", arch}) {
		t.Errorf("facts %v, of which the last should be the host's architecture", facts)
	}
}
