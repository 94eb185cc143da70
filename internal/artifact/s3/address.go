package s3

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Address is the location of artifacts in an object store.
type Address struct {
	Bucket, Prefix string // the prefix is empty or ends in a slash
	// Endpoint is the server's URL, without a path; Region is the server's region.
	Endpoint *url.URL
	Region   string
}

const (
	scheme          = "s3"
	defaultEndpoint = "https://s3.amazonaws.com"
	// example is appended to error messages.
	example = "want s3://BUCKET/PREFIX?endpoint=https://HOST&region=REGION"
)

// ParseAddress parses s3://BUCKET/PREFIX?endpoint=URL&region=NAME, where everything but the bucket is optional.
// Credentials in the address are refused.
func ParseAddress(text string) (Address, error) {
	u, err := url.Parse(text)
	if err != nil { // the message contains the text, which may contain a secret
		return Address{}, fmt.Errorf("the address of the object store cannot be read: %s", example)
	}
	if u.User != nil {
		return Address{}, errSecret()
	}
	if u.Scheme != scheme || u.Host == "" || u.Port() != "" || u.Fragment != "" {
		return Address{}, fmt.Errorf("object store %q: %s", text, example)
	}
	a := Address{Bucket: u.Host, Prefix: strings.Trim(u.Path, "/")}
	if a.Prefix != "" {
		a.Prefix += "/"
	}
	endpoint := defaultEndpoint
	for key, values := range u.Query() {
		switch {
		case len(values) != 1:
			return Address{}, fmt.Errorf("object store: %s comes %d times: %s", key, len(values), example)
		case key == "endpoint":
			endpoint = values[0]
		case key == "region":
			a.Region = values[0]
		case secret(key):
			return Address{}, errSecret()
		default:
			return Address{}, fmt.Errorf("object store: %q is not known: %s", key, example)
		}
	}
	a.Endpoint, err = url.Parse(endpoint)
	switch {
	case err != nil || a.Endpoint.Host == "" || a.Endpoint.Scheme != "https" && a.Endpoint.Scheme != "http":
		return Address{}, fmt.Errorf("object store: its endpoint is not https://HOST or http://HOST: %s", example)
	case a.Endpoint.User != nil:
		return Address{}, errSecret()
	case strings.Trim(a.Endpoint.Path, "/") != "" || a.Endpoint.RawQuery != "":
		return Address{}, fmt.Errorf("object store: its endpoint %q has more than a host: %s", endpoint, example)
	}
	return a, nil
}

// secret reports whether a query key commonly contains credentials.
func secret(key string) bool {
	key = strings.ToLower(key)
	words := []string{"key", "secret", "token", "password", "credential"}
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(key, word) })
}

func errSecret() error {
	return fmt.Errorf("the address of the object store has credentials, which others can see in it: " +
		"put them into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or ~/.aws/credentials")
}

// String returns the bucket and the prefix.
func (a Address) String() string { return scheme + "://" + a.Bucket + "/" + a.Prefix }
