package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/signing"
)

// verifyKeyFlag is the flag's name.
const verifyKeyFlag = "verify-key"

// verifyFlag is the key that must have signed what is used.
type verifyFlag struct{ file string }

func (f *verifyFlag) add(c *cobra.Command, what string) {
	c.Flags().StringVar(&f.file, verifyKeyFlag, "", "`file` of a minisign public key that must have signed "+what+" (see 'tilth sign'); overrides TILTH_VERIFY_KEY")
}

// key is nil where nothing needs to be signed.
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

// open opens a file for reading, or standard input. With a key, what is read was verified.
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

// verified is a file of this process's own with what was verified of a package, and what removes it after use. Without
// a key it is the package itself.
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
		_ = out.Close() // the copy has failed anyway
		return err
	}
	return out.Close()
}

// unsignable refuses what cannot be signed where a signature is wanted.
func unsignable(where string) error {
	return usagef("%s has no signature, which --%s wants: name a file that 'tilth sign' signed, or leave the key out", where, verifyKeyFlag)
}
