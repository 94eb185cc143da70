package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// checkLinks checks every link of the site that `make docs` builds: to pages, sections, files of the site, and files
// of the repository. The site must contain all pages of its navigation. It does not use the network.
//
// usage: docs links SITE ROOT
func checkLinks(_ context.Context, args []string) error {
	if len(args) != 2 {
		return errors.New("usage: docs links SITE ROOT")
	}
	s, err := readSite(args[0])
	if err != nil {
		return err
	}
	faults, err := s.lost(args[1])
	if err != nil {
		return err
	}
	faults = append(faults, s.broken(args[1])...)
	for _, fault := range faults {
		fmt.Fprintf(os.Stderr, "links: %s\n", fault)
	}
	fmt.Printf("links: %d pages, %d links, %d broken\n", len(s.pages), s.links, len(faults))
	if len(faults) > 0 {
		return errors.New("the site has broken links")
	}
	return nil
}

// repository is the prefix of links to files outside the site.
const repository = "https://github.com/tilth-dev/tilth/"

// page holds the anchors and links of a page.
type page struct {
	ids   map[string]bool
	links []string
}

// site holds the pages by name, and the names of other files.
type site struct {
	root  string
	pages map[string]page
	links int
}

// readSite reads all pages of a folder.
func readSite(root string) (*site, error) {
	s := &site{root: root, pages: map[string]page{}}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(file) != ".html" {
			return err
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		s.pages[filepath.ToSlash(name)], err = readPage(file)
		return err
	})
	if err == nil && len(s.pages) == 0 {
		err = fmt.Errorf("%s has no pages: build them with make docs", root)
	}
	return s, err
}

func readPage(file string) (page, error) {
	f, err := os.Open(file)
	if err != nil {
		return page{}, err
	}
	defer f.Close()
	tree, err := html.Parse(f)
	if err != nil {
		return page{}, fmt.Errorf("%s: %w", file, err)
	}
	p := page{ids: map[string]bool{}}
	for node := range tree.Descendants() {
		for _, a := range node.Attr {
			switch a.Key {
			case "id":
				p.ids[a.Val] = true
			case "href", "src":
				p.links = append(p.links, a.Val)
			}
		}
	}
	return p, nil
}

// broken returns the broken links. It looks up links to the repository in its folder.
func (s *site) broken(repositoryRoot string) (faults []string) {
	for _, name := range slices.Sorted(maps.Keys(s.pages)) {
		for _, to := range s.pages[name].links {
			s.links++
			if fault := s.follow(name, to, repositoryRoot); fault != "" {
				faults = append(faults, fmt.Sprintf("%s: %s: %s", name, to, fault))
			}
		}
	}
	return faults
}

// follow returns the reason why a link is broken, or "".
func (s *site) follow(from, to, repositoryRoot string) string {
	target, err := url.Parse(to)
	switch {
	case err != nil:
		return err.Error()
	case target.Scheme == "data":
		return ""
	case strings.HasPrefix(to, repository):
		return followSource(strings.TrimPrefix(target.Path, "/tilth-dev/tilth/"), repositoryRoot)
	case target.IsAbs() || target.Host != "":
		return ""
	}
	name := path.Join(path.Dir(from), target.Path)
	if strings.HasPrefix(target.Path, "/") || strings.HasPrefix(name, "..") {
		return "it leads out of the site"
	}
	if target.Path == "" {
		name = from
	}
	p, isPage := s.pages[name]
	if !isPage {
		return missing(filepath.Join(s.root, name), false)
	}
	if target.Fragment != "" && !p.ids[target.Fragment] {
		return "the page has no such section"
	}
	return ""
}

// followSource returns the reason why a link to a file or folder of the repository is broken, or "".
func followSource(to, root string) string {
	if file, is := strings.CutPrefix(to, "blob/main/"); is && filepath.IsLocal(file) {
		return missing(filepath.Join(root, file), false)
	}
	if folder, is := strings.CutPrefix(to, "tree/main/"); is && filepath.IsLocal(folder) {
		return missing(filepath.Join(root, folder), true)
	}
	return "it leads to no file of the branch main"
}

func missing(file string, folder bool) string {
	info, err := os.Stat(file)
	switch {
	case err == nil && folder && info.IsDir(), err == nil && !folder && info.Mode().IsRegular():
		return ""
	case folder:
		return "there is no such folder"
	}
	return "there is no such file"
}
