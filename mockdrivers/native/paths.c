/* Which paths are redirected into the server's tree, and which files there stand for devices.
 *
 * TREE/manifest, one row a line:
 *     redirect PATH               PATH and everything below it is looked up in TREE
 *     device PATH MAJOR MINOR     the file TREE/PATH stands for a character device
 */
#include "shim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#define MAX_REDIRECTS 64
#define MAX_NODES 256

static char tree[SG_PATH_MAX / 2];
static char redirects[MAX_REDIRECTS][128];
static size_t n_redirects;
static struct sg_node nodes[MAX_NODES];
static size_t n_nodes;

static void add_device(const char *path, unsigned major_, unsigned minor_)
{
    char file[SG_PATH_MAX];
    struct stat st;
    snprintf(file, sizeof file, "%s%s", tree, path);
    if (n_nodes == MAX_NODES || sg_real()->stat(file, &st) || sg_node_of(st.st_dev, st.st_ino))
        return;
    struct sg_node *node = &nodes[n_nodes];
    node->dev = st.st_dev;
    node->ino = st.st_ino;
    node->rdev = makedev(major_, minor_);
    snprintf(node->path, sizeof node->path, "%s", path);
    n_nodes++;
}

static void add_row(const char *line)
{
    char path[256];
    unsigned major_, minor_;
    if (sscanf(line, "redirect %127s", path) == 1 && n_redirects < MAX_REDIRECTS)
        snprintf(redirects[n_redirects++], sizeof redirects[0], "%.127s", path);
    else if (sscanf(line, "device %255s %u %u", path, &major_, &minor_) == 3)
        add_device(path, major_, minor_);
}

bool sg_tree_load(const char *folder)
{
    char name[SG_PATH_MAX], line[512];
    size_t length = folder ? strlen(folder) : 0;
    if (!length || length >= sizeof tree) {
        errno = ENAMETOOLONG;
        return false;
    }
    snprintf(name, sizeof name, "%s/manifest", folder);
    FILE *manifest = sg_real()->fopen(name, "re");
    if (!manifest)
        return false;
    n_redirects = 0; /* nodes of an earlier tree stay: files open on them point there */
    memcpy(tree, folder, length + 1);
    while (fgets(line, sizeof line, manifest))
        add_row(line);
    fclose(manifest);
    return true;
}

const char *sg_tree(void)
{
    return tree[0] ? tree : NULL;
}

static bool below(const char *path, const char *top)
{
    size_t n = strlen(top);
    return !strncmp(path, top, n) && (path[n] == '/' || !path[n]);
}

const char *sg_redirect(const char *path, char *buffer)
{
    if (!tree[0] || !path || path[0] != '/')
        return path;
    const char *plain = path;
    while (plain[1] == '/')
        plain++;
    for (size_t i = 0; i < n_redirects; i++) {
        if (!below(plain, redirects[i]))
            continue;
        int n = snprintf(buffer, SG_PATH_MAX, "%s%s", tree, plain);
        return n < SG_PATH_MAX ? buffer : path;
    }
    return path;
}

const struct sg_node *sg_node_of(dev_t dev, ino_t ino)
{
    for (size_t i = 0; i < n_nodes; i++)
        if (nodes[i].ino == ino && nodes[i].dev == dev)
            return &nodes[i];
    return NULL;
}
