package update

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/tilth-dev/tilth/internal/filesystem"
	"github.com/tilth-dev/tilth/internal/humanize"
)

// described matches the output of 'git describe --tags': v1.2.0, v1.2.0-rc.1, or v1.2.0-3-g0123abc for the
// third commit after a tag.
var described = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^v?(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?:-([0-9A-Za-z.]{1,64}?))?(?:-(\d{1,9})-g[0-9a-f]{4,40})?(?:-dirty)?$`)
})

// version orders releases.
type version struct {
	numbers [3]int
	// before names a pre-release, such as rc.1; empty for a release.
	before string
	// after counts the commits after the tag.
	after int
}

func parseVersion(text string) (v version, err error) {
	m := described().FindStringSubmatch(text)
	if m == nil {
		return v, fmt.Errorf("%q is not a version of a release, such as v1.2.0", text)
	}
	for k := range v.numbers {
		v.numbers[k], _ = strconv.Atoi(m[k+1]) // at most nine digits
	}
	if m[4] == "dirty" {
		return v, fmt.Errorf("%q is not a version of a release: it has changes that are not committed", text)
	}
	v.before = m[4]
	v.after, _ = strconv.Atoi(m[5])
	return v, nil
}

// compare returns a negative number if v is older than other, and 0 if they are equal.
func (v version) compare(other version) int {
	for k := range v.numbers {
		if c := cmp.Compare(v.numbers[k], other.numbers[k]); c != 0 {
			return c
		}
	}
	return cmp.Or(compareBefore(v.before, other.before), cmp.Compare(v.after, other.after))
}

// compareBefore orders pre-release names like semantic versioning: part by part, numbers by value and before words.
func compareBefore(a, b string) int {
	if a == "" || b == "" {
		return cmp.Compare(len(b), len(a)) // the release itself, without a name, is last
	}
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for k := range min(len(as), len(bs)) {
		x, errX := strconv.Atoi(as[k])
		y, errY := strconv.Atoi(bs[k])
		c := strings.Compare(as[k], bs[k])
		switch {
		case errX == nil && errY == nil:
			c = cmp.Compare(x, y)
		case errX == nil:
			c = -1
		case errY == nil:
			c = 1
		}
		if c != 0 {
			return c
		}
	}
	return cmp.Compare(len(as), len(bs))
}

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
	if _, later := errors.AsType[laterError](why); later {
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
	return filesystem.WriteFile(path, func(w io.Writer) error {
		var text strings.Builder
		for _, f := range all {
			text.WriteString(f.version + " " + f.why + "\n")
		}
		_, err := io.WriteString(w, text.String())
		return err
	})
}

// plain reduces a text to one line of valid UTF-8 without unprintable characters, of at most a number of bytes.
func plain(text string, limit int) string {
	text = strings.Join(strings.Fields(humanize.Printable(text, "")), " ")
	return strings.ToValidUTF8(text[:min(len(text), limit)], "")
}
