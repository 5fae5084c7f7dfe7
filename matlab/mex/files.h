/* Readers and writers of files for the MEX file: the additional functions of the static library recon_files.
 *
 * Generated from src/files/c_api by `make header`: edit that instead. */

#ifndef RECON_FILES_H
#define RECON_FILES_H

#include <recon.h>

// The images of a file. Created by recon_files_read_images.
typedef struct recon_files_images recon_files_images;

// The raw data of a file. Created by recon_files_read_raw and recon_files_read_bart.
typedef struct recon_files_raw recon_files_raw;

// The images to read: a number from 0 for each counter, or -1 for all.
typedef struct recon_files_selection {
    int64_t encoding;
    int64_t slice;
    int64_t repetition;
    int64_t contrast;
    int64_t phase;
    int64_t set;
} recon_files_selection;

// Fields of the XML header, and the header itself. Texts are NULL, numbers NAN, if the header does not have them.
typedef struct recon_files_header {
    const char *xml;
    const char *vendor;
    const char *model;
    const char *patient_position;
    const double *echo_times_ms;
    uint64_t echo_time_count;
    const double *repetition_times_ms;
    uint64_t repetition_time_count;
    // Ratio of the receiver's noise bandwidth to its sampling bandwidth.
    double noise_bandwidth;
    double field_strength_tesla;
    double frequency_hz;
} recon_files_header;

// Noise samples.
typedef struct recon_files_noise {
    uint64_t coils;
    uint64_t samples;
    // Time between samples in seconds; 0 if unknown.
    double dwell;
    // Complex float [samples, coils].
    const void *data;
} recon_files_noise;

// An image, or several images (channels) on the same grid.
typedef struct recon_files_image {
    // Voxels along x, y and z.
    uint64_t dims[3];
    uint64_t channels;
    // Complex float [x, y, z, channels].
    const void *data;
    // Field of view in mm: the voxel size times dims; 0 if unknown.
    double fov_mm[3];
    // Position and directions as in recon_scan_properties.
    double position[3];
    double read_dir[3];
    double phase_dir[3];
    double slice_dir[3];
    double table_position[3];
    // Time from one repetition to the next in ms; NAN if unknown.
    double repetition_time_ms;
    uint32_t measurement_uid;
    uint32_t acquisition_time_stamp;
    uint32_t physiology_time_stamp[3];
    uint32_t encoding;
    uint32_t slice;
    uint32_t repetition;
    uint32_t contrast;
    uint32_t phase;
    uint32_t set;
    uint32_t average;
} recon_files_image;

// Returns the message of this thread's last failure, in UTF-8. It is valid until the next failure.
const char *recon_files_message(void);

// Returns the text of warning `index` of this thread's last call of a reader or writer, in UTF-8, and writes its
// recon_warning, or 0 for a warning about a file. NULL if there are no more. It is valid until the next call.
const char *recon_files_warning(uint64_t index, uint32_t *kind);

// Reads the raw data of the group `group` of an ISMRMRD file. The caller passes `*raw` to recon_files_free_raw.
recon_status recon_files_read_raw(const char *path,
                                  const char *group,
                                  const recon_scan_options *options,
                                  const recon_files_selection *selection,
                                  recon_files_raw **raw);

// Writes what a file contains: 1 for raw data in this group, 2 for images, 0 for neither.
recon_status recon_files_contents(const char *path, const char *group, uint32_t *contents);

// Reads k-space of BART, [1, samples, shots, coils], and its trajectory, [3, samples, shots] in 1/FOV of a matrix.
recon_status recon_files_read_bart(const char *kspace,
                                   const char *trajectory,
                                   const uint64_t *matrix,
                                   recon_files_raw **raw);

// Returns the number of images.
uint64_t recon_files_scan_count(const recon_files_raw *raw);

// Writes the properties of an image's data, or of its calibration, with the addresses of their arrays. An image
// without calibration data has a calibration of 0 samples.
recon_status recon_files_scan(const recon_files_raw *raw,
                              uint64_t index,
                              uint32_t calibration,
                              recon_scan_properties *properties);

// Frees the data of an image, whose number remains.
void recon_files_free_scan(recon_files_raw *raw, uint64_t index);

// Writes the header's fields. They belong to the raw data.
void recon_files_header_of(const recon_files_raw *raw, recon_files_header *header);

// Writes group `index` of the noise, one for each number of coils and sample time. It has 0 samples if there are no
// more.
void recon_files_noise_of(const recon_files_raw *raw, uint64_t index, recon_files_noise *noise);

// Frees raw data. NULL is ignored.
void recon_files_free_raw(recon_files_raw *raw);

// Writes raw data as an ISMRMRD file.
//
// - xml: the XML header; NULL for a header with the matrix and field of view of the first scan.
// - scans: their times may be NULL.
// - calibration: scans with 0 samples are left out, and of several with the same counters all but the first.
recon_status recon_files_write_raw(const char *path,
                                   const char *xml,
                                   const recon_scan_properties *scans,
                                   const recon_scan_properties *calibration,
                                   uint64_t count,
                                   const recon_files_noise *noise,
                                   uint64_t noise_count);

// Reads the images of a file of any format. The caller passes `*images` to recon_files_free_images.
recon_status recon_files_read_images(const char *path, recon_files_images **images);

// Returns the number of images.
uint64_t recon_files_image_count(const recon_files_images *images);

// Writes image `index`, whose data belong to the images.
recon_status recon_files_image_at(const recon_files_images *images, uint64_t index, recon_files_image *to);

// Frees images. NULL is ignored.
void recon_files_free_images(recon_files_images *images);

// Writes images, in the format that the ending of the name selects.
recon_status recon_files_write_images(const char *path, const recon_files_image *images, uint64_t count);

// Returns an image without data.
recon_files_image recon_files_empty_image(void);

#endif  /* RECON_FILES_H */
