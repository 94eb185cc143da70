package registry

import (
	"context"
	"fmt"
	"strings"

	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/bolt"
	"github.com/tilth-dev/tilth/records/memory"
	"github.com/tilth-dev/tilth/records/postgres"
)

// reserveBytes are addresses for a file's mapping: 64 GiB, or 1 GiB where addresses have 32 bits. A file that stays
// below is backed up and listed without holding up those who write.
const reserveBytes = 1 << (30 + 6*(^uint(0)>>63))

// Kind is a kind of store.
type Kind struct {
	// Name is how people choose it, the form of an address where it has one; About says where it keeps what is stored.
	Name, About string
	// Check says what is wrong with the address by which it was chosen; nil = it has none.
	Check func(address string) error
	// Open opens the store, and makes it when there is none. What it keeps is at the address by which it was chosen,
	// or else in a file at path.
	Open func(address, path string) (records.Store, error)
	// StandBy is Open for a tracker that waits while another one has the store, and calls standsBy once when it begins
	// to; see postgres.Await. nil = nobody waits.
	StandBy func(ctx context.Context, address string, standsBy func() error) (records.Store, error)
	// Shard is StandBy for one of several shards of the store; see postgres.Options. nil = the store has one.
	Shard func(ctx context.Context, address string, of Shard) (records.Store, error)
	// Members are the processes that serve shards of the store, of which this one has an id of its own.
	Members func(address, id string) (Members, error)
	// Source and Target open the store for a conversion: to read all that it keeps, or to copy that into it. nil = it
	// keeps nothing that could be.
	Source func(ctx context.Context, address, path string) (records.Stopped, error)
	Target func(ctx context.Context, address, path string) (records.Target, error)
}

// Shard is one of several shards of a store.
type Shard struct {
	Index, Count int
	// Reluctant says whether this process has its share of them already.
	Reluctant func(ctx context.Context) bool
	// StandsBy is called when the wait for it begins, since another process has it; nil = nobody is to hear of it.
	StandsBy func()
}

// Members are those who serve shards; see postgres.Members.
type Members interface {
	Meet(ctx context.Context, own records.Member) (others []records.Member, err error)
	Leave()
}

// scheme is the part of a name or an address by which kinds are told apart.
func scheme(text string) string {
	s, _, _ := strings.Cut(text, "://")
	if s == "postgresql" { // PostgreSQL's own programs take both
		return "postgres"
	}
	return s
}

// All are the kinds, the usual one first.
func All() []Kind {
	return []Kind{
		{
			Name: "bolt", About: "in a file",
			Open: func(_, path string) (records.Store, error) {
				return opened(bolt.Open(path, bolt.Options{ReserveBytes: reserveBytes}))
			},
			Source: func(ctx context.Context, _, path string) (records.Stopped, error) {
				return stopped(bolt.OpenSource(ctx, path))
			},
			Target: func(_ context.Context, _, path string) (records.Target, error) { return target(bolt.OpenTarget(path)) },
		},
		{Name: "memory", About: "in memory, and loses it when it stops", Open: func(string, string) (records.Store, error) {
			return memory.New(memory.Options{}), nil
		}},
		{
			Name: "postgres://USER@HOST:PORT/DATABASE", About: "in that PostgreSQL database", Check: postgres.Check,
			Open: func(address, _ string) (records.Store, error) {
				return opened(postgres.Open(address, postgres.Options{}))
			},
			StandBy: func(ctx context.Context, address string, standsBy func() error) (records.Store, error) {
				return opened(postgres.Await(ctx, address, postgres.Options{}, standsBy))
			},
			Shard: func(ctx context.Context, address string, of Shard) (records.Store, error) {
				waits := func() error { // what answers meanwhile is there anyway
					if of.StandsBy != nil {
						of.StandsBy()
					}
					return nil
				}
				return opened(postgres.Await(ctx, address, postgres.Options{Shard: of.Index, Shards: of.Count, Reluctant: of.Reluctant}, waits))
			},
			Members: func(address, id string) (Members, error) { return postgres.NewMembers(address, id) },
			Source: func(ctx context.Context, address, _ string) (records.Stopped, error) {
				return stopped(postgres.OpenSource(ctx, address, postgres.Options{}))
			},
			Target: func(ctx context.Context, address, _ string) (records.Target, error) {
				return target(postgres.OpenTarget(ctx, address, postgres.Options{}))
			},
		},
	}
}

// opened, stopped and target are stores as interfaces, nil with an error.
func opened[S records.Store](s S, err error) (records.Store, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

func stopped[S records.Stopped](s S, err error) (records.Stopped, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

func target[S records.Target](s S, err error) (records.Target, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Of is the kind that somebody chose by its name or an address; the usual one has the empty name, too. Errors do not
// repeat what may be an address, in which there may be a password.
func Of(choice string) (Kind, error) {
	var names []string
	for _, k := range All() {
		if choice == "" || scheme(choice) == scheme(k.Name) && (k.Check != nil || choice == k.Name) {
			return k, k.check(choice)
		}
		names = append(names, k.Name)
	}
	named := fmt.Sprintf("%q ", choice)
	if strings.ContainsAny(choice, ":/@=") {
		named = ""
	}
	return Kind{}, fmt.Errorf("store %sis not known; use %s", named, strings.Join(names, " or "))
}

func (k Kind) check(choice string) error {
	if k.Check == nil {
		return nil
	}
	return k.Check(choice)
}

// Help is a sentence on all kinds, for people who choose one.
func Help() string {
	var all []string
	for _, k := range All() {
		all = append(all, k.Name+" keeps it "+k.About)
	}
	return strings.Join(all, "; ")
}
