package config

import "path/filepath"

// TLS configures how commands trust a sidecar at https://.
type TLS struct {
	CA          string `mapstructure:"ca"`          // file of authorities, PEM; "": those of the system
	Certificate string `mapstructure:"certificate"` // of this machine, for listen.client_ca
	Key         string `mapstructure:"key"`
}

func (c *Config) validateTLS(check func(ok bool, key, format string, args ...any)) {
	for _, pair := range []struct{ section, certificate, key string }{
		{"web", c.Web.Certificate, c.Web.Key}, {"listen", c.Listen.Certificate, c.Listen.Key}, {"tls", c.TLS.Certificate, c.TLS.Key},
	} {
		check((pair.certificate == "") == (pair.key == ""), pair.section+".key", "%q; want the key of %s.certificate, or neither", pair.key, pair.section)
		check(pair.certificate == "" || filepath.IsAbs(pair.certificate) && filepath.IsAbs(pair.key), pair.section+".certificate", "%q, %q; want absolute paths", pair.certificate, pair.key)
	}
	check(c.Listen.ClientCA == "" || c.Listen.Certificate != "" && filepath.IsAbs(c.Listen.ClientCA), "listen.client_ca", "%q; want an absolute path, with listen.certificate", c.Listen.ClientCA)
	check(c.TLS.CA == "" || filepath.IsAbs(c.TLS.CA), "tls.ca", "%q is not an absolute path", c.TLS.CA)
}
