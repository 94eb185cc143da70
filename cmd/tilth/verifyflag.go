package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/signing"
)

// verifyKeyFlag is the name of the flag.
const verifyKeyFlag = "verify-key"

// verifyFlag names the key that must have signed the input.
type verifyFlag struct{ file string }

func (f *verifyFlag) add(c *cobra.Command, what string) {
	c.Flags().StringVar(&f.file, verifyKeyFlag, "", "`file` of a minisign public key that must have signed "+what+" (see 'tilth sign'); overrides TILTH_VERIFY_KEY")
}

// key returns the key, or nil.
func (f *verifyFlag) key() (*signing.PublicKey, error) {
	if f.file == "" {
		return nil, nil
	}
	key, err := signing.ReadPublicKey(f.file)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", verifyKeyFlag, err)
	}
	return &key, nil
}

// open opens a file for reading, or standard input. With a key, it verifies the content.
func (f *verifyFlag) open(a *app, path string) (io.ReadCloser, error) {
	key, err := f.key()
	switch {
	case err != nil:
		return nil, err
	case key == nil:
		return a.openInput(path)
	case path == stdio:
		return nil, unsignable("standard input")
	}
	return signing.OpenVerified(path, *key)
}

// verified returns a private copy of the verified part of a package, and a function that removes it. Without
// a key it returns the package itself.
func (f *verifyFlag) verified(path string) (file string, done func(), err error) {
	key, err := f.key()
	if key == nil || err != nil {
		return path, func() {}, err
	}
	if path == stdio {
		return "", nil, unsignable("standard input")
	}
	sealed, err := signing.OpenVerified(path, *key)
	if err != nil {
		return "", nil, err
	}
	defer sealed.Close()
	dir, err := os.MkdirTemp("", "tilth-verified-*")
	if err != nil {
		return "", nil, err
	}
	done = func() { _ = os.RemoveAll(dir) } // a temporary folder
	file = filepath.Join(dir, filepath.Base(path))
	if err := copyTo(file, sealed); err != nil {
		done()
		return "", nil, fmt.Errorf("copy %s: %w", path, err)
	}
	return file, done, nil
}

func copyTo(path string, from io.Reader) error {
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, from); err != nil {
		_ = out.Close() // the copy failed anyway
		return err
	}
	return out.Close()
}

// unsignable returns the error for unsigned input that must be signed.
func unsignable(where string) error {
	return usagef("%s has no signature, which --%s wants: name a file that 'tilth sign' signed, or leave the key out", where, verifyKeyFlag)
}
