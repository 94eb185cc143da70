package sbom

import (
	"bytes"
	"cmp"
	"crypto/sha1"
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"
	"github.com/spdx/tools-golang/spdxlib"

	"github.com/tilth-dev/tilth/lab/dist/licences"
)

// Program is a program of a release.
type Program struct {
	// Name is the program's path in the release: ARCHIVE/tilth.
	Name    string
	Data    []byte
	Modules []licences.Module
}

// Release describes the release.
type Release struct {
	// Name and Version identify the release, Source is its repository, and Commit its commit.
	Name, Version, Source, Commit string
	// Licence is an SPDX expression.
	Licence  string
	When     time.Time
	Programs []Program
}

const (
	main    = spdx.ElementID("Package-main")
	noClaim = "NOASSERTION"
	creator = "tilth-dist"
)

// Write returns the SBOM as JSON, validated against SPDX.
func Write(r Release) ([]byte, error) {
	doc := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT",
		DocumentName:      r.Name + "-" + r.Version,
		DocumentNamespace: r.Source + "/sbom/" + r.Version + "/" + r.Commit,
		CreationInfo: &spdx.CreationInfo{
			Creators: []spdx.Creator{{CreatorType: "Tool", Creator: creator}}, Created: r.When.UTC().Format(time.RFC3339),
		},
		Packages: []*spdx.Package{{
			PackageName: r.Name, PackageSPDXIdentifier: main, PackageVersion: r.Version,
			PackageDownloadLocation: "git+" + r.Source + "@" + r.Commit, PackageHomePage: r.Source,
			PackageLicenseConcluded: r.Licence, PackageLicenseDeclared: r.Licence, PackageCopyrightText: noClaim,
			PrimaryPackagePurpose: "APPLICATION",
		}},
		Relationships: []*spdx.Relationship{relation("DOCUMENT", "DESCRIBES", main)},
	}
	modules := map[spdx.ElementID]bool{}
	for i, p := range r.Programs {
		file := spdx.ElementID(fmt.Sprintf("File-%d", i+1))
		doc.Files = append(doc.Files, fileOf(file, p, r.Licence))
		doc.Relationships = append(doc.Relationships, relation(file, "GENERATED_FROM", main))
		for _, m := range p.Modules {
			id := moduleID(m)
			if !modules[id] {
				modules[id] = true
				doc.Packages = append(doc.Packages, packageOf(id, m))
			}
			doc.Relationships = append(doc.Relationships, relation(file, "STATIC_LINK", id))
		}
	}
	slices.SortStableFunc(doc.Packages[1:], func(a, b *spdx.Package) int {
		return cmp.Compare(a.PackageSPDXIdentifier, b.PackageSPDXIdentifier)
	})
	if err := spdxlib.ValidateDocument(doc); err != nil {
		return nil, fmt.Errorf("SBOM: %w", err)
	}
	var out bytes.Buffer
	if err := spdxjson.Write(doc, &out, spdxjson.Indent("  ")); err != nil {
		return nil, fmt.Errorf("SBOM: %w", err)
	}
	return out.Bytes(), nil
}

func relation(a spdx.ElementID, kind string, b spdx.ElementID) *spdx.Relationship {
	return &spdx.Relationship{
		RefA: spdx.DocElementID{ElementRefID: a}, Relationship: kind, RefB: spdx.DocElementID{ElementRefID: b},
	}
}

func fileOf(id spdx.ElementID, p Program, licence string) *spdx.File {
	found := []string{licence}
	for _, m := range p.Modules {
		for one := range strings.SplitSeq(m.Licence, " AND ") {
			if !slices.Contains(found, one) {
				found = append(found, one)
			}
		}
	}
	slices.Sort(found)
	return &spdx.File{
		FileName: "./" + p.Name, FileSPDXIdentifier: id, FileTypes: []string{"BINARY"},
		Checksums: []spdx.Checksum{
			{Algorithm: spdx.SHA1, Value: fmt.Sprintf("%x", sha1.Sum(p.Data))}, // SPDX 2.3 requires it
			{Algorithm: spdx.SHA256, Value: fmt.Sprintf("%x", sha256.Sum256(p.Data))},
		},
		LicenseConcluded: strings.Join(found, " AND "), LicenseInfoInFiles: found, FileCopyrightText: noClaim,
	}
}

func packageOf(id spdx.ElementID, m licences.Module) *spdx.Package {
	p := &spdx.Package{
		PackageName: m.Path, PackageSPDXIdentifier: id, PackageVersion: m.Version,
		PackageLicenseConcluded: m.Licence, PackageLicenseDeclared: m.Licence, PackageCopyrightText: noClaim,
		PackageDownloadLocation: noClaim, // any proxy may serve it; the reference below and the digest identify it
		PackageExternalReferences: []*spdx.PackageExternalReference{{
			Category: "PACKAGE-MANAGER", RefType: "purl", Locator: "pkg:golang/" + m.Path + "@" + m.Version,
		}},
		PrimaryPackagePurpose: "LIBRARY",
	}
	if m.Path == licences.StandardLibrary {
		p.PackageDownloadLocation = "https://go.dev/dl/go" + m.Version + ".src.tar.gz"
	} else {
		p.PackageComment = "The digest in go.sum is " + m.Sum
	}
	return p
}

var unnamed = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

func moduleID(m licences.Module) spdx.ElementID {
	return spdx.ElementID("Module-" + unnamed.ReplaceAllString(m.Path+"-"+m.Version, "-"))
}
