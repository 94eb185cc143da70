package update

import (
	"errors"
	"io"
	"os"
	"strings"
	"unicode"

	"github.com/tilth-dev/tilth/internal/atomicfile"
)

// mostRefused bounds how many versions that failed are kept, mostWhy what is kept of each reason, in bytes.
const (
	mostRefused = 16
	mostWhy     = 512
)

// failure is a version that failed on trial, with the reason.
type failure struct{ version, why string }

// laterError is a failure that says nothing of the release, so that it is tried again.
type laterError struct{ error }

func (e laterError) Unwrap() error { return e.error }

// Refuse notes that a version failed. One that failed by itself is not tried again; any other is, later.
func (u *Updater) Refuse(version string, why error) {
	defer u.unlock()
	u.last = failure{version, plain(why.Error(), mostWhy)}
	u.tried.failed(version, u.cfg.Every)
	if err := os.Remove(u.next()); err != nil && !errors.Is(err, os.ErrNotExist) {
		u.cfg.Logger.Warn("a program that failed on trial stays", "error", err)
	}
	var later laterError
	if errors.As(why, &later) {
		return
	}
	all := append(u.failures(), u.last)
	all = all[max(0, len(all)-mostRefused):]
	if err := writeFailures(u.refused(), all); err != nil {
		u.cfg.Logger.Warn("a release that failed is tried again after the next start of this program", "version", version, "error", err)
		u.unwritten = append(u.unwritten, u.last)
		u.unwritten = u.unwritten[max(0, len(u.unwritten)-mostRefused):]
	}
}

// Refused is the version that failed last, and why; empty where none did.
func (u *Updater) Refused() (version, why string) {
	if u.last.version == "" {
		if all := u.failures(); len(all) > 0 {
			return all[len(all)-1].version, all[len(all)-1].why
		}
	}
	return u.last.version, u.last.why
}

// failures are the versions that are not tried again, the last one at the end.
func (u *Updater) failures() []failure {
	f, err := os.Open(u.refused())
	if err != nil {
		return u.unwritten
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, mostRefused*2*mostWhy))
	if err != nil {
		return u.unwritten
	}
	var all []failure
	for line := range strings.Lines(string(data)) {
		if version, why, _ := strings.Cut(plain(line, 2*mostWhy), " "); version != "" {
			all = append(all, failure{version, why})
		}
	}
	return append(all, u.unwritten...)
}

func writeFailures(path string, all []failure) error {
	return atomicfile.Write(path, func(w io.Writer) error {
		var text strings.Builder
		for _, f := range all {
			text.WriteString(f.version + " " + f.why + "\n")
		}
		_, err := io.WriteString(w, text.String())
		return err
	})
}

// plain is a text in one line of valid UTF-8 without control characters, of a number of bytes at most.
func plain(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	text = strings.Join(strings.Fields(text), " ")
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}
