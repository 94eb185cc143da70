package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// document matches a reference to a page of docs/.
var document = regexp.MustCompile(`([\s(])docs/([a-z-]+\.md)`)

// makeReference generates the reference pages: the command line from the program's help, gRPC from the protocol's
// files, and JSON from its schemas.
//
// usage: docs reference -tilth PROGRAM -root REPOSITORY -out FOLDER
func makeReference(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("reference", flag.ContinueOnError)
	program := flags.String("tilth", "bin/tilth", "the program")
	root := flags.String("root", ".", "folder of the repository")
	out := flags.String("out", ".tools/docs", "folder for the pages; those in it are removed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	pages, err := commandPages(ctx, *program)
	if err != nil {
		return err
	}
	if pages["grpc.md"], err = wirePage(ctx, *root); err != nil {
		return err
	}
	if pages["schemas.md"], err = schemasPage(filepath.Join(*root, "docs", "schema")); err != nil {
		return err
	}
	return writePages(*out, pages)
}

// writePages replaces the pages in a folder. It refuses a folder with other files.
func writePages(out string, pages map[string]string) error {
	err := filepath.WalkDir(out, func(file string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && filepath.Ext(file) != ".md" {
			return fmt.Errorf("%s is not a page: name a folder with -out that has nothing but pages", file)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	for name, text := range pages {
		file := filepath.Join(out, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(linked(name, text)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// linked turns references to documents into links.
func linked(name, text string) string {
	up := strings.Repeat("../", strings.Count(name, "/")+1)
	return document.ReplaceAllString(text, "$1[docs/$2]("+up+"$2)")
}
