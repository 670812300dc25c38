//go:build lowwater_gcs

package checkpoint

import _ "gocloud.dev/blob/gcsblob" // for gs:// addresses
