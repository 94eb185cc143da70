package certs

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

func TestIsLocal(t *testing.T) {
	for addr, want := range map[string]bool{
		"127.0.0.1:9190": true, "127.8.9.1:1": true, "[::1]:9190": true, "localhost:9190": true, "unix:/run/tilth.sock": true,
		"": false, "localhost": false, ":9190": false, "0.0.0.0:9190": false, "[::]:9190": false, "192.0.2.1:9190": false,
		"board.test:9190": false, "localhost.board.test:9190": false, "127.0.0.1.board.test:9190": false, "dns:///127.0.0.1:9190": false,
		"127.0.0.1:1,unix:/run/tilth.sock": true, "127.0.0.1:1,board.test:9190": false, "127.0.0.1:1,": false,
	} {
		if got := IsLocal(addr); got != want {
			t.Errorf("%q stays here: %v, want %v", addr, got, want)
		}
	}
}

func TestTokenFilesAreReloadedAtomically(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	write("  first\n")
	tok, err := openToken(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ text, want string }{{"", "first"}, {"second\n", "second"}, {"two words", "second"}, {"line\nline", "second"}, {"third", "third"}} {
		write(step.text)
		header, err := tok.GetRequestMetadata(t.Context())
		if err != nil || header["authorization"] != "Bearer "+step.want {
			t.Errorf("after %q: %v, %v; want %s", step.text, header, err, step.want)
		}
	}
}
