package storesync

import (
	"crypto/sha256"
	"slices"

	"github.com/tilth-dev/tilth/internal/wire"
	"github.com/tilth-dev/tilth/records"
)

// Keyed is the part of a store that summaries need; see records.Measurements.
type Keyed interface {
	GroupPage(target, after string, limit int) (groups []records.Group, next string, err error)
	KeyPage(of records.Group, from records.Key, limit int) ([]records.Key, error)
}

// Summary summarizes the records of a group. Sides with equal summaries have the same records.
type Summary struct {
	records.Group
	// Records is their number.
	Records uint64
	// Keys is the digest of their sorted keys.
	Keys [sha256.Size]byte
}

const (
	// groupsPerLook and keysPerLook bound one read.
	groupsPerLook = 512
	keysPerLook   = wire.MaxRecordKeys
	// A page of summaries ends at groupsPerPage, or with the group that reaches keysPerPage, which takes a fraction of
	// a second to read.
	groupsPerPage = 512
	keysPerPage   = 1 << 19
)

// Summaries implements Catalogue.Groups for a store. limit bounds the page; 0 means the default.
func Summaries(s Keyed, f Filter, after string, limit int) (page []Summary, next string, err error) {
	if limit <= 0 || limit > groupsPerPage {
		limit = groupsPerPage
	}
	for keys := uint64(0); ; after = next {
		groups, more, err := s.GroupPage(f.Target, after, groupsPerLook)
		if err != nil {
			return nil, "", err
		}
		for _, g := range groups {
			if !f.Wants(g) {
				continue
			}
			if len(page) == limit || keys >= keysPerPage {
				return page, page[len(page)-1].Name(), nil
			}
			sum, err := summarise(s, g)
			if err != nil {
				return nil, "", err
			}
			if keys += sum.Records; sum.Records > 0 {
				page = append(page, sum)
			}
		}
		if next = more; next == "" {
			return page, "", nil
		}
	}
}

func summarise(s Keyed, of records.Group) (Summary, error) {
	sum, digest := Summary{Group: of}, sha256.New()
	for from := (records.Key{}); ; {
		keys, err := s.KeyPage(of, from, keysPerLook)
		if err != nil || len(keys) == 0 {
			digest.Sum(sum.Keys[:0])
			return sum, err
		}
		digest.Write(records.PackKeys(keys))
		sum.Records += uint64(len(keys))
		from = keys[len(keys)-1].After()
	}
}

// Lacking returns which of some sorted keys of a group have no record in the store. It scans the store's keys in
// parallel.
func Lacking(s Keyed, of records.Group, keys []records.Key) (lacking []records.Key, err error) {
	for len(keys) > 0 {
		have, err := s.KeyPage(of, keys[0], keysPerLook)
		if err != nil {
			return nil, err
		}
		if len(have) == 0 {
			return append(lacking, keys...), nil
		}
		for last := have[len(have)-1]; len(keys) > 0 && keys[0].Compare(last) <= 0; keys = keys[1:] {
			at, there := slices.BinarySearchFunc(have, keys[0], records.Key.Compare)
			if have = have[at:]; !there {
				lacking = append(lacking, keys[0])
			}
		}
	}
	return lacking, nil
}
