package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tilth-dev/tilth/internal/signing"
)

const verifyLong = `Verify the signatures of files that 'tilth sign' or minisign signed: each is FILE.minisig.

A file is verified if the key has signed all of it and the printed comment. Obtain the
public key from a trusted source, separately from the file.`

func newVerify(a *app) *cobra.Command {
	var keyFile, keyText, signature string
	var asJSON bool
	c := &cobra.Command{
		Use: "verify FILE...", Short: "Verify the signatures of files", Long: verifyLong,
		Example: `  tilth verify resnet18.tar --key-file tilth.pub
  tilth verify SHA256SUMS --key "$KEY"    # the line of tilth.pub that begins with RW`,
		Args: cobra.MinimumNArgs(1),
	}
	c.Flags().StringVar(&keyFile, "key-file", "", "`file` of the public key")
	c.Flags().StringVar(&keyText, "key", "", "the public `key` itself: RW and what follows")
	c.Flags().StringVar(&signature, "signature", "", "`file` of the signature (default: FILE.minisig)")
	c.MarkFlagsMutuallyExclusive("key-file", "key")
	jsonFlag(c, &asJSON)
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
		return a.eachFile(files, asJSON, "verified", func(file string) (signedRow, error) {
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
