package farm

import (
	"context"
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/internal/humanize"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/records/postgres"
)

// reserveBytes is the address space reserved for a file mapping: 64 GiB, or 1 GiB on 32-bit systems. Backups and
// listings of smaller files do not delay writers.
const reserveBytes = 1 << (30 + 6*(^uint(0)>>63))

// StoreKind is a kind of store.
type StoreKind struct {
	// Name is the name or the address format by which users select it; About describes where it keeps data.
	Name, About string
	// Check validates the address; nil if the kind uses no address.
	Check func(address string) error
	// Open opens the store, creating it if necessary. The data is at the address or, for kinds without one, in a file
	// at path.
	Open func(address, path string) (records.Store, error)
	// StandBy opens the store once no other tracker has it. It calls standsBy once if it has to wait; see
	// postgres.Await. nil if the kind does not support waiting.
	StandBy func(ctx context.Context, address string, standsBy func() error) (records.Store, error)
	// Shard is like StandBy for one of several shards; see postgres.Options. nil if the store cannot be sharded.
	Shard func(ctx context.Context, address string, of StoreShard) (records.Store, error)
	// Members returns the processes that serve shards of the store. This process registers with the given id.
	Members func(address, id string) (StoreMembers, error)
	// Source and Target open the store for a conversion, to read all rows or to write them. nil if the store has no
	// rows to convert.
	Source func(ctx context.Context, address, path string) (records.Stopped, error)
	Target func(ctx context.Context, address, path string) (records.Target, error)
}

// StoreShard identifies one of several shards of a store.
type StoreShard struct {
	Index, Count int
	// Reluctant reports whether this process already serves its share of the shards.
	Reluctant func(ctx context.Context) bool
	// StandsBy is called when the process starts waiting for another that has the shard; may be nil.
	StandsBy func()
}

// StoreMembers is the set of processes that serve shards; see postgres.Members.
type StoreMembers interface {
	Heartbeat(ctx context.Context, own records.Member) (others []records.Member, err error)
	Leave()
}

// storeScheme returns the scheme of an address, which identifies the kind.
func storeScheme(text string) string {
	s, _, _ := strings.Cut(text, "://")
	if s == "postgresql" { // PostgreSQL's own programs accept both
		return "postgres"
	}
	return s
}

// StoreKinds returns the kinds, the default first.
func StoreKinds() []StoreKind {
	return []StoreKind{
		{
			Name: "bolt", About: "in a file",
			Open: func(_, path string) (records.Store, error) {
				return orNil[records.Store](bolt.Open(path, bolt.Options{ReserveBytes: reserveBytes}))
			},
			Source: func(ctx context.Context, _, path string) (records.Stopped, error) {
				return orNil[records.Stopped](bolt.OpenSource(ctx, path))
			},
			Target: func(_ context.Context, _, path string) (records.Target, error) {
				return orNil[records.Target](bolt.OpenTarget(path))
			},
		},
		{Name: "memory", About: "in memory, and loses it when it stops", Open: func(string, string) (records.Store, error) {
			return bolt.OpenMemory(bolt.Options{})
		}},
		{
			Name: "postgres://USER@HOST:PORT/DATABASE", About: "in that PostgreSQL database", Check: postgres.Check,
			Open: func(address, _ string) (records.Store, error) {
				return orNil[records.Store](postgres.Open(address, postgres.Options{}))
			},
			StandBy: func(ctx context.Context, address string, standsBy func() error) (records.Store, error) {
				return orNil[records.Store](postgres.Await(ctx, address, postgres.Options{}, standsBy))
			},
			Shard: func(ctx context.Context, address string, of StoreShard) (records.Store, error) {
				waits := func() error { // the host already answers in the meantime
					if of.StandsBy != nil {
						of.StandsBy()
					}
					return nil
				}
				return orNil[records.Store](postgres.Await(ctx, address, postgres.Options{Shard: of.Index, Shards: of.Count, Reluctant: of.Reluctant}, waits))
			},
			Members: func(address, id string) (StoreMembers, error) { return postgres.NewMembers(address, id) },
			Source: func(ctx context.Context, address, _ string) (records.Stopped, error) {
				return orNil[records.Stopped](postgres.OpenSource(ctx, address, postgres.Options{}))
			},
			Target: func(ctx context.Context, address, _ string) (records.Target, error) {
				return orNil[records.Target](postgres.OpenTarget(ctx, address, postgres.Options{}))
			},
		},
	}
}

// orNil returns a store, or nil with an error.
func orNil[S any](s S, err error) (S, error) {
	if err != nil {
		var none S
		return none, err
	}
	return s, nil
}

// StoreKindOf returns the kind selected by a name or address; "" selects the default. Errors do not quote addresses,
// since they may contain passwords.
func StoreKindOf(choice string) (_ StoreKind, err error) {
	var names []string
	for _, k := range StoreKinds() {
		if choice == "" || storeScheme(choice) == storeScheme(k.Name) && (k.Check != nil || choice == k.Name) {
			if k.Check != nil {
				err = k.Check(choice)
			}
			return k, err
		}
		names = append(names, k.Name)
	}
	named := fmt.Sprintf("%q ", choice)
	if strings.ContainsAny(choice, ":/@=") {
		named = ""
	}
	return StoreKind{}, fmt.Errorf("store %sis not known; use %s", named, strings.Join(names, " or "))
}

// StoreHelp returns a sentence that describes all kinds.
func StoreHelp() string {
	return humanize.Join(StoreKinds(), "; ", func(k StoreKind) string { return k.Name + " keeps it " + k.About })
}
