package update

import (
	"errors"
	"io"
	"os"
	"strings"
	"unicode"

	"github.com/tilth-dev/tilth/internal/disk"
)

// maxRefused bounds the number of failed versions kept, and maxWhy the bytes kept of each reason.
const (
	maxRefused = 16
	maxWhy     = 512
)

// failure is a version that failed on trial, with the reason.
type failure struct{ version, why string }

// laterError is a failure that does not concern the release itself, so the release is retried.
type laterError struct{ error }

func (e laterError) Unwrap() error { return e.error }

// Refuse records that a version failed. A failure of the version itself is final; after any other, the
// version is retried later.
func (u *Updater) Refuse(version string, why error) {
	defer u.unlock()
	u.last = failure{version, plain(why.Error(), maxWhy)}
	u.tried.failed(version, u.cfg.Every)
	if err := os.Remove(u.next()); err != nil && !errors.Is(err, os.ErrNotExist) {
		u.cfg.Logger.Warn("a program that failed on trial stays", "error", err)
	}
	var later laterError
	if errors.As(why, &later) {
		return
	}
	all := append(u.failures(), u.last)
	all = all[max(0, len(all)-maxRefused):]
	if err := writeFailures(u.refused(), all); err != nil {
		u.cfg.Logger.Warn("a release that failed is tried again after the next start of this program", "version", version, "error", err)
		u.unwritten = append(u.unwritten, u.last)
		u.unwritten = u.unwritten[max(0, len(u.unwritten)-maxRefused):]
	}
}

// Refused returns the version that failed last, with the reason, or empty strings.
func (u *Updater) Refused() (version, why string) {
	if u.last.version == "" {
		if all := u.failures(); len(all) > 0 {
			return all[len(all)-1].version, all[len(all)-1].why
		}
	}
	return u.last.version, u.last.why
}

// failures returns the versions that are not retried, latest last.
func (u *Updater) failures() []failure {
	f, err := os.Open(u.refused())
	if err != nil {
		return u.unwritten
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxRefused*2*maxWhy))
	if err != nil {
		return u.unwritten
	}
	var all []failure
	for line := range strings.Lines(string(data)) {
		if version, why, _ := strings.Cut(plain(line, 2*maxWhy), " "); version != "" {
			all = append(all, failure{version, why})
		}
	}
	return append(all, u.unwritten...)
}

func writeFailures(path string, all []failure) error {
	return disk.WriteFile(path, func(w io.Writer) error {
		var text strings.Builder
		for _, f := range all {
			text.WriteString(f.version + " " + f.why + "\n")
		}
		_, err := io.WriteString(w, text.String())
		return err
	})
}

// plain reduces a text to one line of valid UTF-8 without control characters, of at most a number of bytes.
func plain(text string, limit int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	text = strings.Join(strings.Fields(text), " ")
	return strings.ToValidUTF8(text[:min(len(text), limit)], "")
}
