package deb

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

var (
	tagged   = regexp.MustCompile(`^v(\d+(?:\.\d+)*)(?:-([0-9A-Za-z.]+?))?(?:-(\d+)-g([0-9a-f]+))?$`)
	untagged = regexp.MustCompile(`^[0-9a-f]{7,40}$`)
)

// Version converts a version by 'git describe --tags --always' to one that Debian orders correctly. v1.2.0 becomes
// 1.2.0, v1.2.0-rc.1 becomes the earlier 1.2.0~rc.1, and the third commit after v1.2.0 becomes 1.2.0+3.gabcdef0. A
// commit without an earlier tag is ordered by its time, before all releases.
func Version(described string, when time.Time) (string, error) {
	described = strings.TrimSuffix(described, "-dirty")
	if m := tagged.FindStringSubmatch(described); m != nil {
		version := m[1]
		if m[2] != "" {
			version += "~" + m[2]
		}
		if m[3] != "" {
			version += "+" + m[3] + ".g" + m[4]
		}
		return version, nil
	}
	if untagged.MatchString(described) {
		return fmt.Sprintf("0~%s.g%s", when.UTC().Format("20060102150405"), described), nil
	}
	return "", fmt.Errorf("%q is no version of a release: want a tag such as v1.2.0, or what 'git describe --tags --always' prints", described)
}
