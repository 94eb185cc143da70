package tokens

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

	"github.com/tilth-dev/tilth/internal/access"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func create(t *testing.T, path string, req Request, now time.Time) (string, Token) {
	t.Helper()
	text, kept, err := Create(path, req, now)
	if err != nil {
		t.Fatal(err)
	}
	return text, kept
}

func TestATokenIsFoundUntilItExpiresOrIsRevoked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	text, kept := create(t, path, Request{Name: "alice", Role: access.Client, Lifetime: time.Hour}, noon)
	file, err := Open(path, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := file.Set().Find(text, noon)
	if err != nil || got.Name != "alice" || got.Role != access.Client {
		t.Errorf("found %v, %v", got, err)
	}
	if _, err := file.Set().Find(text, noon.Add(time.Hour)); !errors.Is(err, ErrExpired) {
		t.Errorf("after its time: %v", err)
	}
	for _, wrong := range []string{"", "tilth", text + "x", text[:len(text)-1], "tilth_" + kept.ID + "_", kept.SHA256, strings.ToLower(text)} {
		if _, err := file.Set().Find(wrong, noon); !errors.Is(err, ErrUnknown) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	if _, err := Revoke(path, func(t Token) bool { return t.ID == kept.ID }); err != nil {
		t.Fatal(err)
	}
	if _, err := file.Set().Find(text, noon); !errors.Is(err, ErrUnknown) {
		t.Errorf("after it was revoked: %v", err)
	}
	if err := file.Set().Valid(kept.ID, noon); !errors.Is(err, ErrUnknown) {
		t.Errorf("a stream of a revoked token: %v", err)
	}
	if _, err := Revoke(path, func(t Token) bool { return t.ID == kept.ID }); err == nil || !strings.Contains(err.Error(), "has no such token") {
		t.Errorf("revoked twice: %v", err)
	}
}

func TestTwoTokensOfOneNameAreValidWhileOneReplacesTheOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	first, _ := create(t, path, Request{Name: "board", Role: access.Agent}, noon)
	other, _ := create(t, path, Request{Name: "shelf", Role: access.Agent}, noon)
	second, _ := create(t, path, Request{Name: "board", Role: access.Agent, Retire: time.Hour}, noon)
	set, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text string
		at   time.Duration
		want error
	}{
		{first, 59 * time.Minute, nil}, {second, 59 * time.Minute, nil},
		{first, time.Hour, ErrExpired}, {second, time.Hour, nil}, {other, time.Hour, nil},
	} {
		if _, err := set.Find(c.text, noon.Add(c.at)); !errors.Is(err, c.want) {
			t.Errorf("%s after %v: %v, want %v", c.text[:14], c.at, err, c.want)
		}
	}
}

func TestChangesAreTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	_, first := create(t, path, Request{Name: "alice", Role: access.Client}, noon)
	var told []string
	ids := func(list []Token) (out string) {
		for _, t := range list {
			out += " " + t.ID
		}
		return out
	}
	file, err := Open(path, slog.New(slog.DiscardHandler), func(c Change) { told = append(told, "come"+ids(c.Come)+" gone"+ids(c.Gone)) })
	if err != nil {
		t.Fatal(err)
	}
	_, second := create(t, path, Request{Name: "bob", Role: access.Agent}, noon)
	file.Set()
	_, third := create(t, path, Request{Name: "bob", Role: access.Agent, Retire: time.Hour}, noon)
	file.Set()
	if _, err := Revoke(path, func(t Token) bool { return t.ID == first.ID }); err != nil {
		t.Fatal(err)
	}
	file.Set()
	want := []string{"come " + second.ID + " gone", "come " + second.ID + " " + third.ID + " gone " + second.ID, "come gone " + first.ID}
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

func TestTheFileHoldsNoSecretAndIsPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	text, _ := create(t, path, Request{Name: "alice", Role: access.Admin}, noon)
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
			if _, _, err := Create(path, Request{Name: "many", Role: access.Agent}, noon); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if set, err := Read(path); err != nil || len(set.Tokens) != 8 {
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
		if _, err := Read(file); err == nil || err.Error() != want {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
	if _, err := Read("none.json"); !errors.Is(err, os.ErrNotExist) || !strings.HasSuffix(err.Error(), "make it with 'tilth tracker token create NAME --role ROLE --tokens none.json'") {
		t.Errorf("a missing file: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "{}", `{"version":1,"tokens":[]}`, `{"version":1,"tokens":[{"id":"abcdefgh"}]}`} {
		f.Add([]byte(seed), "tilth_abcdefgh_x")
	}
	f.Fuzz(func(t *testing.T, text []byte, token string) {
		set, err := parse(text)
		if err != nil {
			return
		}
		found, err := set.Find(token, noon)
		if err == nil && !slices.Contains(set.Tokens, found) {
			t.Errorf("%q found %v, which is not in the file", token, found)
		}
	})
}
