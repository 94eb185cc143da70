package update

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
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

// compare returns a negative number if v is older than other, and 0 if they are equal.
func (v version) compare(other version) int {
	for k := range v.numbers {
		if c := cmp.Compare(v.numbers[k], other.numbers[k]); c != 0 {
			return c
		}
	}
	return cmp.Or(compareBefore(v.before, other.before), cmp.Compare(v.after, other.after))
}

// compareBefore orders pre-release names like semantic versioning: part by part, numbers by value and before
// words.
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
