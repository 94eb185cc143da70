package target

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestStoredTargetsKeepTheirNames: records, caches and models are keyed by fingerprints and device classes, so
// those of stored descriptions must not change, nor may the text that they derive from.
func TestStoredTargetsKeepTheirNames(t *testing.T) {
	list, err := os.ReadFile("testdata/fingerprints.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(list)) {
		words := strings.Fields(line)
		text, err := os.ReadFile(filepath.Join("testdata", words[0]+".json"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		if string(got.Encode()) != string(text) {
			t.Errorf("%s is encoded as %s, was %s", words[0], got.Encode(), text)
		}
		if got.DeviceClass() != words[1] || got.Fingerprint() != words[2] {
			t.Errorf("%s has the names %s and %s, had %s and %s", words[0], got.DeviceClass(), got.Fingerprint(), words[1], words[2])
		}
	}
}

// TestBackendIsPartOfAFingerprintAndNotOfADevice: measurements with one backend do not apply to another.
func TestBackendIsPartOfAFingerprintAndNotOfADevice(t *testing.T) {
	a, err := Parse("x86-64-v3", 2)
	if err != nil {
		t.Fatal(err)
	}
	b := a.WithBackend("other")
	if a.DeviceClass() != b.DeviceClass() || a.Fingerprint() == b.Fingerprint() || !strings.HasPrefix(b.Fingerprint(), "other-") {
		t.Errorf("classes %s, %s; fingerprints %s, %s", a.DeviceClass(), b.DeviceClass(), a.Fingerprint(), b.Fingerprint())
	}
	again, err := Decode(b.Encode())
	if err != nil || again.Fingerprint() != b.Fingerprint() {
		t.Errorf("%s is read as %v, %v", b.Encode(), again, err)
	}
	if _, err := Decode(b.WithBackend("../x").Encode()); err == nil {
		t.Error("any name of a backend is read")
	}
}
