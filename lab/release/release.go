package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// sumsFile is the name of the file that lists the digests of all others.
const sumsFile = "SHA256SUMS"

// release is a release under construction.
type release struct {
	*source
	archs []string
	out   string
	say   func(string)
	// work is the temporary folder for programs. host is the program that runs on this machine.
	work, host string
	// sums maps the names of written files to their digests.
	sums map[string][sha256.Size]byte
}

// make creates all files except the signature.
func (r *release) make(ctx context.Context) (err error) {
	r.sums = map[string][sha256.Size]byte{}
	if r.work, err = os.MkdirTemp("", "tilth-dist-"); err != nil {
		return err
	}
	defer os.RemoveAll(r.work)
	if err := r.clear(); err != nil {
		return err
	}
	programs, err := r.buildAll(ctx)
	if err != nil {
		return err
	}
	if err := r.writeAll(ctx, programs); err != nil {
		return err
	}
	script, err := r.read("deploy/install.sh")
	if err != nil {
		return err
	}
	if err := r.write("install.sh", script[0].Data, 0o755); err != nil {
		return err
	}
	if err := r.writeWheel(ctx); err != nil {
		return err
	}
	if err := r.writeIndex(); err != nil {
		return err
	}
	return r.writeSums()
}

// clear empties the output folder. Files that do not belong to a release are an error.
func (r *release) clear() error {
	entries, err := os.ReadDir(r.out)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !strings.HasPrefix(e.Name(), "tilth") && !slices.Contains([]string{sumsFile, sumsFile + ".minisig", indexFile, "install.sh"}, e.Name()) {
			return fmt.Errorf("%s contains %s, which is not part of a release: name another folder", r.out, e.Name())
		}
	}
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	return os.MkdirAll(r.out, 0o755)
}

// buildAll builds the programs, and the one for this machine, whose help texts become the manual.
func (r *release) buildAll(ctx context.Context) (programs []program, err error) {
	for _, arch := range r.archs {
		for _, static := range []bool{false, true} {
			p := program{arch: arch, static: static}
			r.say("building " + p.name(r.version))
			if p, err = r.build(ctx, p, r.work); err != nil {
				return nil, err
			}
			if static && arch == runtime.GOARCH {
				r.host = p.path
			}
			programs = append(programs, p)
		}
	}
	if r.host == "" {
		here, err := r.build(ctx, program{arch: runtime.GOARCH, static: true}, r.work)
		if err != nil {
			return nil, err
		}
		r.host = here.path
	}
	return programs, nil
}

// writeAll writes the archives, packages, image and SBOM.
func (r *release) writeAll(ctx context.Context, programs []program) (err error) {
	var common shared
	if common.documents, err = r.read("LICENSE", "README.md", "CHANGELOG.md"); err != nil {
		return err
	}
	if common.completions, err = completions(ctx, r.host); err != nil {
		return err
	}
	if common.manual, err = r.manual(ctx, r.host); err != nil {
		return err
	}
	image := r.image()
	for i := range programs {
		if err := programs[i].load(ctx, r.root); err != nil {
			return err
		}
		p := programs[i]
		if err := r.writeArchive(p, common); err != nil {
			return err
		}
		if p.static {
			err = image.add(p, common)
		} else {
			err = r.writeDebian(p, common)
		}
		if err != nil {
			return err
		}
	}
	packed, err := image.write()
	if err != nil {
		return err
	}
	if err := r.write("tilth-"+r.version+"-oci.tar", packed, 0o644); err != nil {
		return err
	}
	list, err := r.sbom(programs)
	if err != nil {
		return err
	}
	return r.write("tilth-"+r.version+".spdx.json", list, 0o644)
}

func (r *release) writeArchive(p program, common shared) error {
	files, err := r.archive(p, common)
	if err != nil {
		return err
	}
	packed, err := tarGz("", files, r.when)
	if err != nil {
		return err
	}
	return r.write(p.name(r.version)+".tar.gz", packed, 0o644)
}

func (r *release) writeDebian(p program, common shared) error {
	pkg, err := r.debian(p, common)
	if err != nil {
		return err
	}
	packed, err := pkg.write(r.when)
	if err != nil {
		return err
	}
	return r.write(p.name(r.version)+".deb", packed, 0o644)
}

// write writes a file of the release and records its digest.
func (r *release) write(name string, data []byte, mode os.FileMode) error {
	r.say(fmt.Sprintf("%s, %.1f MiB", name, float64(len(data))/(1<<20)))
	r.sums[name] = sha256.Sum256(data)
	return os.WriteFile(filepath.Join(r.out, name), data, mode)
}

// writeSums writes the digests of all files in the format of sha256sum.
func (r *release) writeSums() error {
	var text strings.Builder
	for _, name := range r.names() {
		fmt.Fprintf(&text, "%x  %s\n", r.sums[name], name)
	}
	return os.WriteFile(filepath.Join(r.out, sumsFile), []byte(text.String()), 0o644)
}

// sign signs the digests, and thereby all files, with 'tilth sign' of the released commit.
func (r *release) sign(ctx context.Context, key, password string) error {
	here, err := r.build(ctx, program{arch: runtime.GOARCH, static: true}, r.out)
	if err != nil {
		return err
	}
	defer os.Remove(here.path)
	args := []string{"sign", filepath.Join(r.out, sumsFile), "--key", key, "--comment", "tilth " + r.version + " " + sumsFile}
	if password != "" {
		args = append(args, "--password-file", password)
	}
	c := exec.CommandContext(ctx, here.path, args...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	return c.Run()
}
