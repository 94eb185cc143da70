package update

import "testing"

func TestVersionsAreOrdered(t *testing.T) {
	inOrder := []string{
		"v0.9.9", "v1.2.0-alpha", "v1.2.0-alpha.1", "v1.2.0-rc.2", "v1.2.0-rc.2-5-g0123abc", "v1.2.0-rc.10", "v1.2.0", "v1.2.0-1-g0123abc",
		"v1.2.0-12-g0123abc", "v1.2.1", "v1.10.0", "v2.0.0",
	}
	for i, a := range inOrder {
		for j, b := range inOrder {
			x, errX := parseVersion(a)
			y, errY := parseVersion(b)
			if errX != nil || errY != nil {
				t.Fatalf("%v, %v", errX, errY)
			}
			if c := x.compare(y); c < 0 != (i < j) || c > 0 != (i > j) {
				t.Errorf("%s compares to %s as %d", a, b, c)
			}
		}
	}
	for _, text := range []string{"", "devel", "314b064e", "v1.2", "v1.2.0/../x", "v1.2.0-", "v1.2.0-dirty", "v99999999999.0.0"} {
		if _, err := parseVersion(text); err == nil {
			t.Errorf("%q is a version", text)
		}
	}
}
