package recordsource

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/tilth-dev/tilth/compiler/schedule"
	"github.com/tilth-dev/tilth/internal/signing"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
	"github.com/tilth-dev/tilth/records"
	"github.com/tilth-dev/tilth/records/staticsite"
)

// IsStatic reports whether a location is an export on a web server or its folder.
func IsStatic(where string) bool {
	scheme, _, is := strings.Cut(where, ":")
	if is && (scheme == "https" || scheme == "http" || scheme == "file") {
		return true
	}
	info, err := os.Stat(where)
	return err == nil && info.IsDir()
}

// ErrReadOnly is returned by imports into an export.
var ErrReadOnly = errors.New("an export of records is only read")

// Static is the read-only source of an export.
type Static struct{ *staticsite.Export }

// OpenStatic opens an export: https://HOST/PATH, file:///FOLDER, or a folder. With a key, its index must be
// signed by it.
func OpenStatic(ctx context.Context, where string, key *signing.PublicKey, o staticsite.ServerOptions) (Static, error) {
	var files staticsite.Files
	if strings.HasPrefix(where, "file:") {
		place, err := url.Parse(where)
		if err != nil || !filepath.IsAbs(place.Path) || place.Host != "" && place.Host != "localhost" {
			return Static{}, fmt.Errorf("%s: a folder on this machine is file:///FOLDER", where)
		}
		files = staticsite.Folder(filepath.Clean(strings.TrimSuffix(place.Path, staticsite.IndexName)))
	} else if strings.HasPrefix(where, "https:") || strings.HasPrefix(where, "http:") {
		server, err := staticsite.NewServer(where, o)
		if err != nil {
			return Static{}, err
		}
		files = server
	} else {
		files = staticsite.Folder(where)
	}
	if key != nil {
		files = staticsite.Signed{Files: files, Key: *key}
	}
	export, err := staticsite.Open(ctx, files)
	return Static{export}, err
}

// Best implements Source.
func (s Static) Best(ctx context.Context, target string, numerics schedule.Numerics, workloads ...string) ([]*tilthv1.Record, error) {
	return s.Export.Best(ctx, target, numerics.String(), workloads...)
}

// Import implements Source.
func (Static) Import(context.Context, func() (*tilthv1.Record, error)) (imported, skipped uint64, err error) {
	return 0, 0, ErrReadOnly
}

// Lacking implements Peer. It always fails.
func (Static) Lacking(context.Context, records.Group, []records.Key) ([]records.Key, error) {
	return nil, ErrReadOnly
}

// Add implements Peer. It always fails.
func (Static) Add(context.Context, []*tilthv1.Record) (added, there uint64, err error) {
	return 0, 0, ErrReadOnly
}

// Close implements Source.
func (Static) Close() error { return nil }
