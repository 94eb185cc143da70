package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/patternmatcher/ignorefile"
	copying "github.com/tonistiigi/fsutil/copy"
	"golang.org/x/sys/unix"

	"github.com/tilth-dev/tilth/lab/deploy/container"
)

// copy copies as BuildKit does, by its own copier: owners, and the modes of folders that are made, are the ones that
// an engine gives.
func (s *stage) copy(ctx context.Context, c *instructions.CopyCommand) error {
	if c.Parents || len(c.ExcludePatterns) > 0 || len(c.SourceContents) > 0 {
		return fmt.Errorf("only plain copies are understood")
	}
	info := copying.CopyInfo{CopyDirContents: true, FollowLinks: true, AllowWildcards: true}
	user, err := ParseUser(c.Chown)
	if err != nil {
		return err
	}
	info.Chown = func(*copying.User) (*copying.User, error) {
		return &copying.User{UID: int(user.UID), GID: int(user.GID)}, nil
	}
	if c.Chmod != "" {
		mode, err := strconv.ParseUint(c.Chmod, 8, 32)
		if err != nil {
			return fmt.Errorf("mode %s: %w", c.Chmod, err)
		}
		octal := int(mode)
		info.Mode = &octal
	}
	from, done, err := s.source(ctx, c.From)
	if err != nil {
		return err
	}
	defer done()
	if c.From == "" {
		info.ExcludePatterns = s.ignored
	}
	dest := c.DestPath
	if !filepath.IsAbs(dest) {
		// The trailing slash marks a folder.
		dest = filepath.Join("/", s.image.Config.WorkingDir, dest) + "/"
	}
	for _, source := range c.SourcePaths {
		if err := copying.Copy(ctx, from, source, s.root, dest, copying.WithCopyInfo(info)); err != nil {
			return err
		}
	}
	return nil
}

// source is the folder that COPY takes files from: the context, or another stage's, which done unmounts.
func (s *stage) source(ctx context.Context, from string) (dir string, done func(), err error) {
	if from == "" {
		return s.Context, func() {}, nil
	}
	image, err := s.Build(ctx, from)
	if err != nil {
		return "", nil, err
	}
	dir = filepath.Join(s.Machine.Dir, "images", s.name+".from."+from)
	if err := container.MountLayers(image.Layers, dir+".layer", dir); err != nil {
		return "", nil, err
	}
	return dir, func() { _ = unix.Unmount(dir, 0) }, nil
}

// readIgnored reads a .dockerignore; without one nothing is ignored.
func readIgnored(path string) ([]string, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ignorefile.ReadAll(f)
}

// User is whom a process runs as, or a file belongs to.
type User struct{ UID, GID uint32 }

// ParseUser reads UID:GID; "" is root. Names would need an image's list of users, and none is used.
func ParseUser(text string) (User, error) {
	if text == "" {
		return User{}, nil
	}
	uid, gid, both := strings.Cut(text, ":")
	u, err := strconv.ParseUint(uid, 10, 32)
	g, failed := strconv.ParseUint(gid, 10, 32)
	if !both || err != nil || failed != nil {
		return User{}, fmt.Errorf("user %q is not UID:GID", text)
	}
	return User{uint32(u), uint32(g)}, nil
}
