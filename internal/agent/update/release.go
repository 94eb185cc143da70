package update

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/tilth-dev/tilth/internal/signing"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// release is the signed content: a version, and the digests of files by name.
type release struct {
	version string
	digests map[string]string
}

// sumsFile is the name of the digest list, which ends the trusted comment of its signature.
const sumsFile = "SHA256SUMS"

// sumLine matches a line of the list. Names cannot leave a folder.
var sumLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([0-9a-f]{64}) [ *]([0-9A-Za-z][0-9A-Za-z.+~_-]{0,255})$`)
})

// verified decodes a release and verifies its signature. Unverified content is not used.
func verified(offer *tilthv1.GetReleaseResponse, key signing.PublicKey) (release, error) {
	signature, err := signing.ParseSignature(offer.GetSignature())
	if err != nil {
		return release{}, err
	}
	comment, err := signature.Verify(bytes.NewReader(offer.GetSums()), key)
	if err != nil {
		return release{}, err
	}
	words := strings.Fields(comment)
	if len(words) != 3 || words[0] != "tilth" || words[2] != sumsFile {
		return release{}, fmt.Errorf("what was signed is no release: its comment is %q", comment)
	}
	r := release{version: words[1], digests: map[string]string{}}
	for line := range strings.Lines(string(offer.GetSums())) {
		m := sumLine().FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			return release{}, errors.New("the digests of the release are not readable")
		}
		r.digests[m[2]] = m[1]
	}
	return r, nil
}
