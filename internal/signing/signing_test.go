package signing

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"aead.dev/minisign"
	"golang.org/x/crypto/blake2b"
	"golang.org/x/crypto/scrypt"
)

// keys returns a new private key and the path of its file.
func keys(t *testing.T) (key PrivateKey, path string) {
	t.Helper()
	_, secret, err := minisign.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := secret.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	return PrivateKey{secret}, write(t, "key", string(text))
}

func write(t *testing.T, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func sign(t *testing.T, key PrivateKey, file, comment string) []byte {
	t.Helper()
	text, err := Sign(strings.NewReader(file), key, comment)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestFileIsVerifiedWithTheKeyThatSignedIt(t *testing.T) {
	_, path := keys(t)
	key, err := ReadPrivateKey(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	text := sign(t, key, "a package", "package.tar of Monday")
	if again := sign(t, key, "a package", "package.tar of Monday"); !bytes.Equal(again, text) {
		t.Error("two signatures of the same file differ")
	}
	s, err := ReadSignature(write(t, "s", string(text)))
	if err != nil {
		t.Fatal(err)
	}
	public, err := ReadPublicKey(write(t, "p", key.Public().String()+"\n"))
	if err != nil || public.ID() != s.KeyID() {
		t.Fatalf("key %s, signature of %s: %v", public.ID(), s.KeyID(), err)
	}
	if comment, err := s.Verify(strings.NewReader("a package"), public); err != nil || comment != "package.tar of Monday" {
		t.Errorf("verified: %q, %v", comment, err)
	}
	if _, err := s.Verify(strings.NewReader("a Package"), public); !errors.Is(err, ErrChanged) {
		t.Errorf("another file: %v", err)
	}
	other, _ := keys(t)
	if _, err := s.Verify(strings.NewReader("a package"), other.Public()); !errors.Is(err, ErrOtherKey) {
		t.Errorf("another key: %v", err)
	}
}

func TestNoByteOfASignatureMayChange(t *testing.T) {
	key, _ := keys(t)
	text := sign(t, key, "a package", "of Monday")
	first := bytes.IndexByte(text, '\n') + 1 // after the untrusted comment
	for i := first; i < len(text)-1; i++ {
		changed := bytes.Clone(text)
		changed[i] ^= 1
		s, err := ParseSignature(changed)
		if err != nil || same(t, changed, text) { // the last letter of base64 has two unused bits
			continue
		}
		if comment, err := s.Verify(strings.NewReader("a package"), key.Public()); err == nil {
			t.Errorf("with byte %d changed the file is verified, with the comment %q", i, comment)
		}
	}
}

func same(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y minisign.Signature
	if err := errors.Join(x.UnmarshalText(a), y.UnmarshalText(b)); err != nil {
		t.Fatal(err)
	}
	return x.Equal(y)
}

func TestInvalidKeysAndSignaturesAreRefused(t *testing.T) {
	key, _ := keys(t)
	old := minisign.SignWithComments(key.key, []byte("a"), "b", "c")
	for name, c := range map[string]struct {
		err  func() error
		want string
	}{
		"no file": {func() error { _, err := ReadPublicKey("/nowhere"); return err }, "no such file"},
		"no secret key": {func() error {
			_, err := ReadPrivateKey(write(t, "k", "hello"), nil)
			return err
		}, "make one with 'minisign -G'"},
		"a public key as a secret one": {func() error {
			_, err := ReadPrivateKey(write(t, "k", key.Public().String()), nil)
			return err
		}, "not a secret key"},
		"no public key": {func() error { _, err := ParsePublicKey("RWhello"); return err }, "no public key"},
		"a large file": {func() error {
			_, err := ReadSignature(write(t, "s", strings.Repeat("a", maxKeyBytes+1)))
			return err
		}, "too large"},
		"no signature":          {func() error { _, err := ParseSignature([]byte("a\nb\nc\nd\n")); return err }, "no signature"},
		"a cut-short signature": {func() error { _, err := ParseSignature(old[:len(old)/2]); return err }, "no signature"},
		"an old signature":      {func() error { _, err := ParseSignature(old); return err }, "old kind"},
		"a comment of two lines": {func() error {
			_, err := Sign(strings.NewReader("a"), key, "b\ntrusted comment: c")
			return err
		}, "line break"},
	} {
		if err := c.err(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
}

func TestMinisignVerifiesWhatIsSignedHereAndTheOtherWayRound(t *testing.T) {
	dir := t.TempDir()
	if said, err := exec.CommandContext(t.Context(), "minisign", "-G", "-W", "-p", dir+"/k.pub", "-s", dir+"/k.key").CombinedOutput(); err != nil {
		t.Fatalf("minisign -G: %v\n%s", err, said)
	}
	key, err := ReadPrivateKey(dir+"/k.key", nil)
	if err != nil {
		t.Fatal(err)
	}
	public, err := ReadPublicKey(dir + "/k.pub")
	if err != nil || public.String() != key.Public().String() {
		t.Fatalf("minisign's two keys are no pair: %v", err)
	}
	file := write(t, "file", "a package")
	if err := os.WriteFile(file+Suffix, sign(t, key, "a package", "of Monday"), 0o600); err != nil {
		t.Fatal(err)
	}
	said, err := exec.CommandContext(t.Context(), "minisign", "-V", "-p", dir+"/k.pub", "-m", file).CombinedOutput()
	if err != nil || !strings.Contains(string(said), "Trusted comment: of Monday") {
		t.Errorf("minisign -V: %v\n%s", err, said)
	}
	said, err = exec.CommandContext(t.Context(), "minisign", "-S", "-s", dir+"/k.key", "-t", "of Tuesday", "-m", file).CombinedOutput()
	if err != nil {
		t.Fatalf("minisign -S: %v\n%s", err, said)
	}
	s, err := ReadSignature(file + Suffix)
	if err != nil {
		t.Fatal(err)
	}
	if comment, err := s.Verify(strings.NewReader("a package"), public); err != nil || comment != "of Tuesday" {
		t.Errorf("verified: %q, %v", comment, err)
	}
}

// encrypted writes a secret key encrypted like minisign's, but with minimal cost. minisign's own parameters take a
// gigabyte and seconds.
func encrypted(t *testing.T, key PrivateKey, password string) (path string) {
	t.Helper()
	plain, err := key.key.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(string(plain), "\n")
	b, err := base64.StdEncoding.DecodeString(body)
	if err != nil {
		t.Fatal(err)
	}
	const opsLimit, memLimit, n = 1 << 15, 1 << 24, 1 << 10
	copy(b[2:], "Sc")
	binary.LittleEndian.PutUint64(b[38:], opsLimit)
	binary.LittleEndian.PutUint64(b[46:], memLimit)
	sum := blake2b.Sum256(append([]byte("Ed"), b[54:54+72]...))
	copy(b[54+72:], sum[:])
	stream, err := scrypt.Key([]byte(password), b[6:38], n, 8, 1, 104)
	if err != nil {
		t.Fatal(err)
	}
	for i := range stream {
		b[54+i] ^= stream[i]
	}
	return write(t, "key", "untrusted comment: minisign encrypted secret key\n"+base64.StdEncoding.EncodeToString(b)+"\n")
}

func TestEncryptedKeyWantsItsPassword(t *testing.T) {
	key, _ := keys(t)
	path := encrypted(t, key, "secret")
	asked := errors.New("no terminal")
	if _, err := ReadPrivateKey(path, func() (string, error) { return "", asked }); !errors.Is(err, asked) {
		t.Errorf("without a password: %v", err)
	}
	if _, err := ReadPrivateKey(path, func() (string, error) { return "Secret", nil }); err == nil || !strings.Contains(err.Error(), "password is wrong") {
		t.Errorf("with a wrong password: %v", err)
	}
	read, err := ReadPrivateKey(path, func() (string, error) { return "secret", nil })
	if err != nil || !read.key.Equal(key.key) {
		t.Errorf("with the password: %v", err)
	}
}
