// Package oidc takes the tokens of an OpenID Connect issuer, such as Keycloak, Dex or Entra ID: signed JWTs that name
// who calls. It reads the issuer's keys in the background and keeps the last that it could read, so that an issuer
// that is away locks nobody out whose key is known. Begin with Verifier.
//
// Sources: OpenID Connect Discovery 1.0, RFC 7517 (keys), RFC 7519 (claims), RFC 8725 (what to refuse).
package oidc
