package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/tilth-dev/tilth/lab/dist/licences"
	"github.com/tilth-dev/tilth/lab/dist/payload"
	"github.com/tilth-dev/tilth/lab/dist/sbom"
)

// sumsFile contains the digests of all other files of a release.
const sumsFile = "SHA256SUMS"

// release is a release under construction.
type release struct {
	*source
	archs []string
	out   string
	say   func(string)
	// work is the temporary folder of programs. host is the program that runs here.
	work, host string
	// sums holds the digests of the written files, by name.
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
	return r.writeSums()
}

// clear empties the folder. It refuses folders with other files than a release's.
func (r *release) clear() error {
	entries, err := os.ReadDir(r.out)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !strings.HasPrefix(e.Name(), "tilth") && !slices.Contains([]string{sumsFile, sumsFile + ".minisig", "install.sh"}, e.Name()) {
			return fmt.Errorf("%s has %s, which is of no release: name another folder", r.out, e.Name())
		}
	}
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	return os.MkdirAll(r.out, 0o755)
}

// buildAll builds the programs, and one for this machine, which writes the manual and signs.
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
	list := sbom.Release{Name: "tilth", Version: r.version, Source: home, Commit: r.commit, Licence: "Apache-2.0", When: r.when}
	image := r.image()
	for _, p := range programs {
		data, err := os.ReadFile(p.path)
		if err != nil {
			return err
		}
		modules, err := licences.OfProgram(ctx, p.path, r.root)
		if err != nil {
			return err
		}
		list.Programs = append(list.Programs, sbom.Program{Name: p.name(r.version) + "/tilth", Data: data, Modules: modules})
		if err := r.writeArchive(p, data, modules, common); err != nil {
			return err
		}
		if p.static {
			err = addArchitecture(&image, p.arch, data, modules, common)
		} else {
			err = r.writeDebian(p, data, modules, common)
		}
		if err != nil {
			return err
		}
	}
	packed, err := image.Write()
	if err != nil {
		return err
	}
	if err := r.write("tilth-"+r.version+"-oci.tar", packed, 0o644); err != nil {
		return err
	}
	text, err := sbom.Write(list)
	if err != nil {
		return err
	}
	return r.write("tilth-"+r.version+".spdx.json", text, 0o644)
}

func (r *release) writeArchive(p program, data []byte, modules []licences.Module, common shared) error {
	files, err := r.archive(p, data, modules, common)
	if err != nil {
		return err
	}
	packed, err := payload.TarGz("", files, r.when)
	if err != nil {
		return err
	}
	return r.write(p.name(r.version)+".tar.gz", packed, 0o644)
}

func (r *release) writeDebian(p program, data []byte, modules []licences.Module, common shared) error {
	pkg, err := r.debian(p, data, modules, common)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	if err := pkg.Write(&packed, r.when); err != nil {
		return err
	}
	return r.write(p.name(r.version)+".deb", packed.Bytes(), 0o644)
}

// write writes a file of the release and records its digest.
func (r *release) write(name string, data []byte, mode os.FileMode) error {
	r.say(fmt.Sprintf("%s, %.1f MiB", name, float64(len(data))/(1<<20)))
	r.sums[name] = sha256.Sum256(data)
	return os.WriteFile(filepath.Join(r.out, name), data, mode)
}

// writeSums writes the digests of all files in the format of sha256sum.
func (r *release) writeSums() error {
	var names []string
	for name := range r.sums {
		names = append(names, name)
	}
	slices.Sort(names)
	var text strings.Builder
	for _, name := range names {
		fmt.Fprintf(&text, "%x  %s\n", r.sums[name], name)
	}
	return os.WriteFile(filepath.Join(r.out, sumsFile), []byte(text.String()), 0o644)
}

// sign signs the digests, and thereby all files, with the built program's 'tilth sign'.
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
