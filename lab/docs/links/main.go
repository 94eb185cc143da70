// Command links checks every link of the site that `make docs` builds: to pages, sections, files of the site, and
// files of the repository. The site must contain all pages of its navigation. The command does not use the network.
//
// usage: links SITE ROOT
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: links SITE ROOT")
		os.Exit(2)
	}
	s, err := read(os.Args[1])
	if err != nil {
		fmt.Fprintf(os.Stderr, "links: %v\n", err)
		os.Exit(1)
	}
	broken, err := s.lost(os.Args[2])
	if err != nil {
		fmt.Fprintf(os.Stderr, "links: %v\n", err)
		os.Exit(1)
	}
	broken = append(broken, s.broken(os.Args[2])...)
	for _, b := range broken {
		fmt.Fprintf(os.Stderr, "links: %s\n", b)
	}
	fmt.Printf("links: %d pages, %d links, %d broken\n", len(s.pages), s.links, len(broken))
	if len(broken) > 0 {
		os.Exit(1)
	}
}
