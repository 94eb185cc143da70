package image

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	imagespec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/tilth-dev/tilth/lab/deploy/container"
)

// Base makes an image that is built elsewhere of this machine's files, in a folder:
//
//   - golang: as debian, and commands of its builds see the machine's Go;
//   - debian: the files of Debian's essential packages and apt, as installed here;
//   - distroless/static: what it documents of itself, but for certificates of authorities;
//   - prom/prometheus: Debian's Prometheus, which is of another version.
func Base(ctx context.Context, name, dir string) (container.Image, error) {
	repository, _, _ := strings.Cut(name, ":")
	switch repository {
	case "golang":
		return container.Image{Layers: []string{dir}, Config: imagespec.ImageConfig{
			Env: []string{"GOTOOLCHAIN=local", "GOPATH=/go",
				"PATH=/go/bin:" + goRoot + "/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		}}, layDebian(ctx, dir)
	case "debian":
		return container.Image{Layers: []string{dir}}, layDebian(ctx, dir)
	case "gcr.io/distroless/static-debian12":
		return distroless(ctx, dir)
	case "prom/prometheus":
		return prometheus(ctx, dir)
	}
	return container.Image{}, fmt.Errorf("there is nothing to make the image %s of", name)
}

func distroless(ctx context.Context, dir string) (container.Image, error) {
	err := layPackages(ctx, dir, []string{"base-files", "netbase", "tzdata"}, false)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "etc/passwd"), []byte("root:x:0:0:root:/root:/sbin/nologin\n"+
			"nobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\n"+
			"nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n"), 0o644)
	}
	if err == nil {
		err = ownedFolder(filepath.Join(dir, "home/nonroot"), 65532, 0o700)
	}
	return container.Image{Layers: []string{dir}, Config: imagespec.ImageConfig{
		User: "65532:65532", WorkingDir: "/home/nonroot",
		Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
			"SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"},
	}}, err
}

func prometheus(ctx context.Context, dir string) (container.Image, error) {
	err := layDebian(ctx, dir)
	if err == nil {
		err = layPackages(ctx, dir, []string{"prometheus"}, true)
	}
	if err == nil {
		err = ownedFolder(filepath.Join(dir, "prometheus"), 65534, 0o755)
	}
	return container.Image{Layers: []string{dir}, Config: imagespec.ImageConfig{
		User: "65534:65534", WorkingDir: "/prometheus", Entrypoint: []string{"/bin/prometheus"},
	}}, err
}

func ownedFolder(path string, owner int, mode os.FileMode) error {
	if err := os.MkdirAll(path, mode); err != nil {
		return err
	}
	return os.Chown(path, owner, owner)
}

// goRoot is where the image golang has Go.
const goRoot = "/usr/local/go"

// certificates are those of the authorities that a module proxy is checked against.
const certificates = "/etc/ssl/certs"

// buildMounts lists what the commands of a build see of this machine: Go, and its caches, to avoid
// recompilation.
func buildMounts() []specs.Mount {
	mounts := []specs.Mount{container.Bind(goEnv("GOROOT"), goRoot, true)}
	for _, name := range []string{"GOCACHE", "GOMODCACHE"} {
		mounts = append(mounts, container.Bind(goEnv(name), goEnv(name), false))
	}
	if _, err := os.Stat(certificates); err == nil {
		mounts = append(mounts, container.Bind(certificates, certificates, true))
	}
	return mounts
}

// buildEnv has Go find its caches and the network as it does on this machine.
func buildEnv() []string {
	env := []string{"HOME=/root"}
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPROXY", "GOSUMDB", "GOFLAGS"} {
		env = append(env, name+"="+goEnv(name))
	}
	return env
}

func goEnv(name string) string {
	value, _ := exec.Command("go", "env", name).Output()
	return strings.TrimSpace(string(value))
}
