package registry

import (
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/records/memory"
)

// reserveBytes are addresses for a file's mapping: 64 GiB, or 1 GiB where addresses have 32 bits. A file that stays
// below is backed up and listed without holding up those who write.
const reserveBytes = 1 << (30 + 6*(^uint(0)>>63))

// Kind is a kind of store.
type Kind struct {
	// Name is how people choose it, and About says where it keeps what is stored.
	Name, About string
	// Open opens the store, and makes it when there is none. What it keeps is in a file at path.
	Open func(path string) (records.Store, error)
}

// All are the kinds, the usual one first.
func All() []Kind {
	return []Kind{
		{"bolt", "in a file", func(path string) (records.Store, error) {
			db, err := bolt.Open(path, bolt.Options{ReserveBytes: reserveBytes})
			if err != nil {
				return nil, err
			}
			return db, nil
		}},
		{"memory", "in memory, and loses it when it stops", func(string) (records.Store, error) {
			return memory.New(memory.Options{}), nil
		}},
	}
}

// Of is the kind of a name; the usual one has the empty name, too.
func Of(name string) (Kind, error) {
	var names []string
	for _, k := range All() {
		if name == "" || name == k.Name {
			return k, nil
		}
		names = append(names, k.Name)
	}
	return Kind{}, fmt.Errorf("store %q is not known; use %s", name, strings.Join(names, " or "))
}

// Help is a sentence on all kinds, for people who choose one.
func Help() string {
	var all []string
	for _, k := range All() {
		all = append(all, k.Name+" keeps it "+k.About)
	}
	return strings.Join(all, "; ")
}
