package tilth_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aead.dev/minisign"

	"github.com/tilth-dev/tilth"
	"github.com/tilth-dev/tilth/compiler/array"
	"github.com/tilth-dev/tilth/compiler/frontend"
	"github.com/tilth-dev/tilth/internal/signing"
	"github.com/tilth-dev/tilth/lab/testkit/modeltest"
)

// TestLoadWithAKeyRequiresItsSignature also checks that a loaded model works after the file is changed.
func TestLoadWithAKeyRequiresItsSignature(t *testing.T) {
	m := modeltest.New().Input("x", 4).Known("bias", array.FromFloat32([]float32{1, 2, 3, 4}, 4)).Node("y = Add x bias").Output("y")
	file := filepath.Join(t.TempDir(), "model.tar")
	if err := compile(t.Context(), m, frontend.Options{}, file); err != nil {
		t.Fatal(err)
	}
	public, secret, err := minisign.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	o := tilth.Options{Threads: 1, VerifyKey: public.String()}
	if _, err := tilth.LoadWith(file, o); err == nil || !strings.Contains(err.Error(), "it is not signed") {
		t.Errorf("without a signature: %v", err)
	}
	sign(t, secret, file)
	loaded, err := tilth.LoadWith(file, o)
	if err != nil {
		t.Fatal(err)
	}
	defer loaded.Close()
	if err := os.Truncate(file, 0); err != nil {
		t.Fatal(err)
	}
	x := tilth.NewTensor("x", []float32{10, 20, 30, 40}, 4)
	if outputs, err := loaded.Run(t.Context(), []tilth.Tensor{x}); err != nil || len(outputs) != 1 {
		t.Errorf("after the file was cut short: %v, %v", outputs, err)
	}
	if _, err := tilth.LoadWith(file, o); err == nil || !strings.Contains(err.Error(), "changed after signing") {
		t.Errorf("a file that was cut short: %v", err)
	}
	if _, err := tilth.LoadWith(file, tilth.Options{VerifyKey: "RWhello"}); err == nil || !strings.Contains(err.Error(), "no public key") {
		t.Errorf("no key: %v", err)
	}
}

// sign writes a file's signature beside it.
func sign(t *testing.T, secret minisign.PrivateKey, file string) {
	t.Helper()
	text, err := secret.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	key, err := signing.ReadPrivateKey(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	signature, err := signing.Sign(f, key, "a model")
	if err == nil {
		err = os.WriteFile(file+signing.Suffix, signature, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
