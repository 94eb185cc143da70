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

// Order lists the certificates to issue in a folder.
type Order struct {
	// Hosts are the names and addresses of the tracker, for which a server certificate is issued; empty = none. The
	// local host is included.
	Hosts []string
	// Clients maps the names of clients to their roles.
	Clients map[string]access.Role
	// Lifetime is the validity of each certificate.
	Lifetime time.Duration
}

// Make issues the certificates, and creates the authority if it does not exist. It returns the certificate files
// that it wrote; each key is stored beside its certificate.
func (o Order) Make(dir string, now time.Time) (made []string, err error) {
	a, fresh, err := authority(dir, now)
	if err != nil {
		return nil, err
	}
	if fresh {
		made = append(made, filepath.Join(dir, "ca.crt"))
	} else if len(o.Hosts)+len(o.Clients) == 0 {
		return nil, fmt.Errorf("%s already has an authority: choose what it signs with --host or --client", dir)
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

// authority reads the folder's authority, or creates one.
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
