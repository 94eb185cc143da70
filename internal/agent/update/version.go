package update

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// described is what 'git describe --tags' calls a commit: v1.2.0, v1.2.0-rc.1, or the third commit after one of them,
// v1.2.0-3-g0123abc.
var described = regexp.MustCompile(`^v?(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?:-([0-9A-Za-z.]{1,64}?))?(?:-(\d{1,9})-g[0-9a-f]{4,40})?(?:-dirty)?$`)

// version orders releases.
type version struct {
	numbers [3]int
	// before is what names a version that comes before its release, such as rc.1; empty for the release.
	before string
	// after counts the commits after the tag.
	after int
}

func parseVersion(text string) (v version, err error) {
	m := described.FindStringSubmatch(text)
	if m == nil {
		return v, fmt.Errorf("%q is no version of a release, such as v1.2.0", text)
	}
	for k := range v.numbers {
		v.numbers[k], _ = strconv.Atoi(m[k+1]) // at most nine digits
	}
	if m[4] == "dirty" {
		return v, fmt.Errorf("%q is no version of a release: it has changes that are not committed", text)
	}
	v.before = m[4]
	v.after, _ = strconv.Atoi(m[5])
	return v, nil
}

// compare is negative where v is older than other, 0 where they are equal.
func (v version) compare(other version) int {
	for k := range v.numbers {
		if c := cmp.Compare(v.numbers[k], other.numbers[k]); c != 0 {
			return c
		}
	}
	return cmp.Or(compareBefore(v.before, other.before), cmp.Compare(v.after, other.after))
}

// compareBefore orders names of versions before a release as semantic versions do: by their parts, numbers by value
// and before words.
func compareBefore(a, b string) int {
	if a == "" || b == "" {
		return cmp.Compare(len(b), len(a)) // the release itself, which has none, is the last
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
