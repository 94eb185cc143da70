package access

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func create(t *testing.T, path string, req TokenRequest, now time.Time) (string, Token) {
	t.Helper()
	text, kept, err := CreateToken(path, req, now)
	if err != nil {
		t.Fatal(err)
	}
	return text, kept
}

func TestTokenIsFoundUntilItExpiresOrIsRevoked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	text, kept := create(t, path, TokenRequest{Name: "alice", Role: Client, Lifetime: time.Hour}, noon)
	file, err := OpenTokens(path, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := file.Get().Find(text, noon)
	if err != nil || got.Name != "alice" || got.Role != Client {
		t.Errorf("found %v, %v", got, err)
	}
	if _, err := file.Get().Find(text, noon.Add(time.Hour)); !errors.Is(err, ErrExpiredToken) {
		t.Errorf("after its time: %v", err)
	}
	for _, wrong := range []string{"", "tilth", text + "x", text[:len(text)-1], "tilth_" + kept.ID + "_", kept.SHA256, strings.ToLower(text)} {
		if _, err := file.Get().Find(wrong, noon); !errors.Is(err, ErrUnknownToken) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	if _, err := RevokeTokens(path, func(t Token) bool { return t.ID == kept.ID }); err != nil {
		t.Fatal(err)
	}
	if _, err := file.Get().Find(text, noon); !errors.Is(err, ErrUnknownToken) {
		t.Errorf("after it was revoked: %v", err)
	}
	if err := file.Get().Valid(kept.ID, noon); !errors.Is(err, ErrUnknownToken) {
		t.Errorf("a stream of a revoked token: %v", err)
	}
	if _, err := RevokeTokens(path, func(t Token) bool { return t.ID == kept.ID }); err == nil || !strings.Contains(err.Error(), "has no such token") {
		t.Errorf("revoked twice: %v", err)
	}
}

func TestTwoTokensOfOneNameAreValidWhileOneReplacesTheOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	first, _ := create(t, path, TokenRequest{Name: "board", Role: Agent}, noon)
	other, _ := create(t, path, TokenRequest{Name: "shelf", Role: Agent}, noon)
	second, _ := create(t, path, TokenRequest{Name: "board", Role: Agent, Retire: time.Hour}, noon)
	set, err := ReadTokens(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text string
		at   time.Duration
		want error
	}{
		{first, 59 * time.Minute, nil}, {second, 59 * time.Minute, nil},
		{first, time.Hour, ErrExpiredToken}, {second, time.Hour, nil}, {other, time.Hour, nil},
	} {
		if _, err := set.Find(c.text, noon.Add(c.at)); !errors.Is(err, c.want) {
			t.Errorf("%s after %v: %v, want %v", c.text[:14], c.at, err, c.want)
		}
	}
}

func TestChangesAreTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	_, first := create(t, path, TokenRequest{Name: "alice", Role: Client}, noon)
	var told []string
	ids := func(list []Token) (out string) {
		for _, t := range list {
			out += " " + t.ID
		}
		return out
	}
	file, err := OpenTokens(path, slog.New(slog.DiscardHandler), func(c TokenChange) { told = append(told, "come"+ids(c.Come)+" gone"+ids(c.Gone)) })
	if err != nil {
		t.Fatal(err)
	}
	_, second := create(t, path, TokenRequest{Name: "bob", Role: Agent}, noon)
	file.Get()
	_, third := create(t, path, TokenRequest{Name: "bob", Role: Agent, Retire: time.Hour}, noon)
	file.Get()
	if _, err := RevokeTokens(path, func(t Token) bool { return t.ID == first.ID }); err != nil {
		t.Fatal(err)
	}
	file.Get()
	want := []string{"come " + second.ID + " gone", "come " + second.ID + " " + third.ID + " gone " + second.ID, "come gone " + first.ID}
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

func TestFileHoldsNoSecretAndIsPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	text, _ := create(t, path, TokenRequest{Name: "alice", Role: Admin}, noon)
	stored, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if secret := text[strings.LastIndex(text, "_")+1:]; strings.Contains(string(stored), secret) {
		t.Errorf("the file holds the secret %s", secret)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info.Mode(), err)
	}
}

func TestTokensMadeAtTheSameTimeAreAllKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, _, err := CreateToken(path, TokenRequest{Name: "many", Role: Agent}, noon); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if set, err := ReadTokens(path); err != nil || len(set.Tokens) != 8 {
		t.Errorf("%v, %v; want 8 tokens", set, err)
	}
}

// TestBadFilesAreRefused compares the errors of the files in testdata/bad with the .txt files of the same names.
func TestBadFilesAreRefused(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "bad", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(strings.TrimSuffix(file, ".json") + ".txt")
		if err != nil {
			t.Error(err)
			continue
		}
		want := "tokens file " + file + ": " + strings.TrimSpace(string(text))
		if _, err := ReadTokens(file); err == nil || err.Error() != want {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
	if _, err := ReadTokens("none.json"); !errors.Is(err, os.ErrNotExist) || !strings.HasSuffix(err.Error(), "make it with 'tilth tracker token create NAME --role ROLE --tokens none.json'") {
		t.Errorf("a missing file: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "{}", `{"version":1,"tokens":[]}`, `{"version":1,"tokens":[{"id":"abcdefgh"}]}`} {
		f.Add([]byte(seed), "tilth_abcdefgh_x")
	}
	f.Fuzz(func(t *testing.T, text []byte, token string) {
		set, err := parseTokens(text)
		if err != nil {
			return
		}
		found, err := set.Find(token, noon)
		if err == nil && !slices.Contains(set.Tokens, found) {
			t.Errorf("%q found %v, which is not in the file", token, found)
		}
	})
}
