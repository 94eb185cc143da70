package signing

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOpenVerifiedReadsTheVerifiedBytes covers a file that is modified in place after verification.
func TestOpenVerifiedReadsTheVerifiedBytes(t *testing.T) {
	key, _ := keys(t)
	path := write(t, "package.tar", "a package")
	if err := os.WriteFile(path+Suffix, sign(t, key, "a package", "of Monday"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := OpenVerified(path, key.Public())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.WriteFile(path, []byte("a  hoax"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(f); err != nil || string(text) != "a package" {
		t.Errorf("read %q, %v", text, err)
	}
	if _, err := f.WriteAt([]byte("b"), 0); err == nil {
		t.Error("the copy can be changed")
	}
	if _, err := OpenVerified(path, key.Public()); !errors.Is(err, ErrChanged) {
		t.Errorf("a file that was changed: %v", err)
	}
}

func TestOpenVerifiedRefusesUnsignedFiles(t *testing.T) {
	key, _ := keys(t)
	other, _ := keys(t)
	path := write(t, "package.tar", "a package")
	if _, err := OpenVerified(path, key.Public()); !errors.Is(err, ErrUnsigned) || !strings.Contains(err.Error(), path) {
		t.Errorf("without a signature: %v", err)
	}
	if err := os.WriteFile(path+Suffix, sign(t, other, "a package", "of Monday"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenVerified(path, key.Public()); !errors.Is(err, ErrOtherKey) {
		t.Errorf("another's signature: %v", err)
	}
	if err := os.WriteFile(path+Suffix, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenVerified(path, key.Public()); err == nil || !strings.Contains(err.Error(), "no signature") {
		t.Errorf("no signature: %v", err)
	}
	if _, err := OpenVerified(path+"x", key.Public()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// TestOpenVerifiedRefusesSpecialFiles covers a pipe without a writer and an endless file.
func TestOpenVerifiedRefusesSpecialFiles(t *testing.T) {
	key, _ := keys(t)
	dir := t.TempDir()
	pipe, endless := filepath.Join(dir, "pipe"), filepath.Join(dir, "endless")
	if err := errors.Join(unix.Mkfifo(pipe, 0o600), os.Symlink("/dev/zero", endless)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, endless} {
		if err := os.WriteFile(path+Suffix, sign(t, key, "a package", "of Monday"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenVerified(path, key.Public()); err == nil || !strings.Contains(err.Error(), path+" is not a regular file") {
			t.Errorf("%s: %v", path, err)
		}
	}
	path := write(t, "package.tar", "a package")
	if err := unix.Mkfifo(path+Suffix, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenVerified(path, key.Public()); err == nil || !strings.Contains(err.Error(), path+Suffix+" is not a regular file") {
		t.Errorf("a pipe as the signature: %v", err)
	}
}

// TestCopyHasNoMoreThanWasVerified covers data appended during the copy.
func TestCopyHasNoMoreThanWasVerified(t *testing.T) {
	f, err := Sealed(strings.NewReader("a package and more"), 9)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if text, err := io.ReadAll(f); err != nil || string(text) != "a package" {
		t.Errorf("read %q, %v", text, err)
	}
}
