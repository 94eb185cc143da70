package certs

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tilth-dev/tilth/internal/access"
)

// Order says which certificates to make in a folder.
type Order struct {
	// Hosts, when there are any, are the names and addresses by which the tracker is reached; it is reached on its own
	// machine too.
	Hosts []string
	// Clients are the roles of who calls, by name.
	Clients map[string]access.Role
	// Lifetime is how long they are valid.
	Lifetime time.Duration
}

// Make makes what is ordered, and an authority where there is none. It returns the files of certificates that it
// wrote; the key of each is beside it.
func (o Order) Make(dir string, now time.Time) (made []string, err error) {
	a, fresh, err := authority(dir, now)
	if err != nil {
		return nil, err
	}
	if fresh {
		made = append(made, filepath.Join(dir, "ca.crt"))
	} else if len(o.Hosts)+len(o.Clients) == 0 {
		return nil, fmt.Errorf("there is an authority in %s already: name what it is to sign with --host or --client", dir)
	}
	pair := func(name string) (string, string) {
		base := filepath.Join(dir, url.PathEscape(name))
		return base + ".crt", base + ".key"
	}
	if len(o.Hosts) > 0 {
		cert, key := pair("tracker")
		hosts := append([]string{"localhost", "127.0.0.1", "::1"}, o.Hosts...)
		if err := a.Server(cert, key, hosts, now, o.Lifetime); err != nil {
			return made, err
		}
		made = append(made, cert)
	}
	for _, name := range slices.Sorted(maps.Keys(o.Clients)) {
		if name == "ca" || name == "tracker" {
			return made, fmt.Errorf("client %s: the files of that name are the farm's own: choose another name", name)
		}
		cert, key := pair(name)
		if err := a.Client(cert, key, name, o.Clients[name], now, o.Lifetime); err != nil {
			return made, err
		}
		made = append(made, cert)
	}
	return made, nil
}

// authority reads the folder's, or makes one.
func authority(dir string, now time.Time) (a *Authority, fresh bool, err error) {
	cert, key := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key")
	_, certErr := os.Stat(cert)
	_, keyErr := os.Stat(key)
	switch {
	case certErr == nil && errors.Is(keyErr, fs.ErrNotExist):
		return nil, false, fmt.Errorf("authority %s: its key %s is missing: restore it, or name another folder with --dir", cert, key)
	case certErr == nil || keyErr == nil:
		a, err = ReadAuthority(cert, key)
		return a, false, err
	}
	if a, err = NewAuthority(now, CALifetime); err != nil {
		return nil, false, err
	}
	return a, true, a.Write(cert, key)
}
