package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/tilth-dev/tilth/internal/filesystem"
	"github.com/tilth-dev/tilth/internal/signing"
)

const signLong = `Sign packages, exports of records, releases or other files.

The signature of FILE is written to FILE.minisig, in minisign's format. The key is one
that 'minisign -G' has made. If it is encrypted, its password is asked for on the
terminal, or read from --password-file. The comment is signed, too, and is by default
the file's name.`

// signedRow is a created or verified signature.
type signedRow struct {
	File      string `json:"file"`
	Signature string `json:"signature"`
	KeyID     string `json:"key_id"`
	Comment   string `json:"comment"`
}

func newSign(a *app) *cobra.Command {
	var keyFile, passwordFile, comment string
	c := &cobra.Command{
		Use: "sign FILE...", Short: "Sign files with a key of minisign", Long: signLong,
		Example: `  minisign -G -p tilth.pub -s tilth.key            # once: a pair of keys
  tilth sign resnet18.tar --key tilth.key          # writes resnet18.tar.minisig
  tilth sign records.jsonl --key tilth.key --comment "records of May, rack 3"`,
		Args: cobra.MinimumNArgs(1),
	}
	c.Flags().StringVar(&keyFile, "key", "", "`file` of the secret key")
	c.Flags().StringVar(&passwordFile, "password-file", "", "`file` with the password of the secret key")
	c.Flags().StringVar(&comment, "comment", "", "`text` to sign along (default: the file's name)")
	_ = c.MarkFlagRequired("key") // the flag exists
	a.jsonFlag(c)
	return a.leaf(c, func(ctx context.Context, files []string) error {
		key, err := signing.ReadPrivateKey(keyFile, func() (string, error) { return a.password(passwordFile) })
		if err != nil {
			return err
		}
		return a.eachFile(files, "signed", func(file string) (signedRow, error) {
			row := signedRow{file, file + signing.Suffix, key.Public().ID(), cmp.Or(comment, filepath.Base(file))}
			return row, signFile(row, key)
		})
	})
}

// signFile writes the signature that a row describes.
func signFile(row signedRow, key signing.PrivateKey) error {
	f, err := signing.OpenRegular(row.File)
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := signing.Sign(f, key, row.Comment)
	if err != nil {
		return fmt.Errorf("sign %s: %w", row.File, err)
	}
	return filesystem.WriteFile(row.Signature, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// eachFile processes files in order and prints each result. It stops at the first failure.
func (a *app) eachFile(files []string, done string, do func(file string) (signedRow, error)) error {
	rows := []signedRow{}
	var failed error
	for _, file := range files {
		row, err := do(file)
		if failed = err; err != nil {
			break
		}
		rows = append(rows, row)
		if !a.asJSON {
			fmt.Fprintf(a.stdout, "%s: %s by key %s: %s\n", row.File, done, row.KeyID, row.Comment)
		}
	}
	if a.asJSON {
		return errors.Join(failed, writeJSON(a.stdout, rows))
	}
	return failed
}

// maxPassword is the longest password, in bytes, that minisign accepts.
const maxPassword = 1024

// password reads the password of a key from a file, or from the terminal without echo.
func (a *app) password(path string) (string, error) {
	if path != "" {
		text, err := os.ReadFile(path)
		if err == nil && len(text) > maxPassword {
			err = fmt.Errorf("%s has more than %d bytes", path, maxPassword)
		}
		return strings.TrimRight(string(text), "\r\n"), err
	}
	f, is := a.stdin.(*os.File)
	if !is || !term.IsTerminal(int(f.Fd())) {
		return "", errors.New("there is no terminal to ask for the password: give --password-file")
	}
	fmt.Fprint(a.stderr, "Password of the key: ")
	text, err := term.ReadPassword(int(f.Fd()))
	fmt.Fprintln(a.stderr)
	return string(bytes.TrimRight(text, "\r\n")), err
}

const verifyLong = `Verify the signatures of files that 'tilth sign' or minisign signed: each is FILE.minisig.

A file is verified if the key has signed all of it and the printed comment. Obtain the
public key from a trusted source, separately from the file.`

func newVerify(a *app) *cobra.Command {
	var keyFile, keyText, signature string
	c := &cobra.Command{
		Use: "verify FILE...", Short: "Verify the signatures of files", Long: verifyLong,
		Example: `  tilth verify resnet18.tar --key-file tilth.pub
  tilth verify SHA256SUMS --key "$KEY"    # the line of tilth.pub that begins with RW`,
		Args: cobra.MinimumNArgs(1),
	}
	c.Flags().StringVar(&keyFile, "key-file", "", "`file` of the public key")
	c.Flags().StringVar(&keyText, "key", "", "the public `key` as text, which begins with RW")
	c.Flags().StringVar(&signature, "signature", "", "`file` of the signature (default: FILE.minisig)")
	c.MarkFlagsMutuallyExclusive("key-file", "key")
	a.jsonFlag(c)
	return a.leaf(c, func(_ context.Context, files []string) error {
		if signature != "" && len(files) > 1 {
			return usagef("--signature is of one file, but there are %d", len(files))
		}
		if keyFile == "" && keyText == "" {
			return usagef("the public key is missing: give --key-file or --key")
		}
		key, err := publicKey(keyFile, keyText)
		if err != nil {
			return err
		}
		return a.eachFile(files, "verified", func(file string) (signedRow, error) {
			row := signedRow{File: file, Signature: signature, KeyID: key.ID()}
			if signature == "" {
				row.Signature = file + signing.Suffix
			}
			row.Comment, err = verifyFile(row, key)
			return row, err
		})
	})
}

// publicKey returns the key of one of two flags.
func publicKey(file, text string) (signing.PublicKey, error) {
	if file != "" {
		return signing.ReadPublicKey(file)
	}
	key, err := signing.ParsePublicKey(text)
	if err != nil {
		return key, usagef("--key: %w", err)
	}
	return key, nil
}

// verifyFile verifies a file and returns its trusted comment.
func verifyFile(row signedRow, key signing.PublicKey) (comment string, err error) {
	f, err := signing.OpenRegular(row.File)
	if err != nil {
		return "", err
	}
	defer f.Close()
	s, err := signing.ReadSignature(row.Signature)
	if err != nil {
		return "", err
	}
	if comment, err = s.Verify(f, key); err != nil {
		return "", fmt.Errorf("%s is not verified: %w", row.File, err)
	}
	return comment, nil
}

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
