// Command dist builds a release of the checked-out commit: programs, archives, Debian packages, a container image, the
// Python wheel, an SBOM, and the digests of all files. Builds are reproducible: they depend only on the commit and the
// version of Go (docs/releases.md).
//
// It is a separate module, so that its dependencies stay out of the main one.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "dist: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	root := flags.String("root", ".", "folder of the repository")
	out := flags.String("out", "dist", "folder for the release; its contents are removed")
	archs := flags.String("arch", strings.Join(architectures, ","), "comma-separated architectures")
	key := flags.String("key", "", "minisign secret key that signs the release")
	password := flags.String("password-file", "", "file that holds the password of the key")
	if err := flags.Parse(args); err != nil {
		return err
	}
	source, err := checkedOut(ctx, *root)
	if err != nil {
		return err
	}
	r := &release{source: source, out: *out, say: func(line string) { fmt.Println("dist: " + line) }}
	if r.archs, err = parseArchitectures(*archs); err != nil {
		return err
	}
	if err := r.make(ctx); err != nil {
		return err
	}
	if *key == "" {
		r.say("SHA256SUMS is not signed: KEY=FILE signs it with minisign's secret key in FILE")
		return nil
	}
	return r.sign(ctx, *key, *password)
}
