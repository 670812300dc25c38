//go:build lowwater_s3

package checkpoint

import _ "gocloud.dev/blob/s3blob" // for s3:// addresses
